import { TrawlError } from '../../base/errors.ts';
import { readTextSync } from '../../base/files/read-text-lines.ts';
import { environmentVariable } from '../../base/options/environment.ts';

export interface StoreCredentials {
  readonly server: string;
  /** Whether they are only sent over TLS. */
  readonly tls: boolean;
  readonly user: string;
  readonly password: string;
}

/** How addresses and lines of credentials of a store are written. */
export interface AddressForm {
  readonly scheme: string;
  readonly tlsScheme: string;
  /** The environment variable with lines of credentials. `<variable>_FILE` names a file with such lines. */
  readonly variable: 'TRAWL_MILVUS_CREDENTIALS' | 'TRAWL_OPENSEARCH_CREDENTIALS';
  /** Reads a line with its user and password as they are, percent-encoded. Undefined for a line of another form. */
  readonly readLine: (text: string) => StoreCredentials | undefined;
}

/**
 * The lines `scheme://USER:PASSWORD@HOST[:PORT]` of the file that `<variable>_FILE` names, or else of the variable itself, where commas or
 * white space separate them. A line belongs to one server, so that another server never gets its password; a line with TLS only to
 * addresses with TLS. Empty lines of the file and those that begin with `#` are skipped.
 *
 * @throws TrawlError CONFIG_INVALID for a file that cannot be read, or a line of another form. The message shows neither a line nor the
 * value of the variable, which may be a line with a password.
 */
export function credentialLines(form: AddressForm): StoreCredentials[] {
  const { variable } = form;
  const file = environmentVariable(`${variable}_FILE`);
  if (file === undefined || file === '') {
    return (environmentVariable(variable) ?? '')
      .split(/[\s,]+/)
      .filter((text) => text !== '')
      .map((text, i) => parseLine(text, `${variable}, part ${i + 1},`, form));
  }
  const content = readTextSync(file, (reason, cause) => {
    // Without the path, which may be a password that belongs into the other variable.
    const why = cause === undefined ? reason : ((cause as NodeJS.ErrnoException).code ?? 'unknown');
    return new TrawlError(
      'CONFIG_INVALID',
      `${variable}_FILE is not the path of a file that can be read (${why}). Lines with credentials belong in such a file, or in ${variable}.`,
    );
  });
  return content.split('\n').flatMap((line, i) => {
    const text = line.trim();
    return text === '' || text.startsWith('#') ? [] : [parseLine(text, `${file}, line ${i + 1},`, form)];
  });
}

function parseLine(text: string, place: string, { scheme, tlsScheme, readLine }: AddressForm): StoreCredentials {
  const line = readLine(text);
  try {
    if (line !== undefined)
      return { ...line, user: decodeURIComponent(line.user), password: decodeURIComponent(line.password) };
  } catch {
    // Not percent-encoded: the same advice.
  }
  throw new TrawlError(
    'CONFIG_INVALID',
    `${place} is not ${scheme}://USER:PASSWORD@HOST[:PORT], or ${tlsScheme}://… for TLS. In user and password, \`@\`, \`:\`, \`/\`, \`%\`, \`,\` and spaces are percent-encoded.`,
  );
}

/** Where `credentialLines` reads, for messages: the file or the variable, never a line. Undefined if neither variable is set. */
export function credentialSource({ variable }: AddressForm): string | undefined {
  const file = environmentVariable(`${variable}_FILE`);
  if (file !== undefined && file !== '') return `the file ${file} (${variable}_FILE)`;
  const lines = environmentVariable(variable);
  return lines === undefined || lines === '' ? undefined : variable;
}
