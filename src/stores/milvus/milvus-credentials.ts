import { TrawlError } from '../../base/errors.ts';
import { credentialLines, credentialSource } from '../published/credential-lines.ts';
import { DEFAULT_PORT, type MilvusAddress, PASSWORD_ADVICE } from './milvus-address.ts';

/** The user of a server and the password. */
export interface MilvusCredentials {
  readonly user: string;
  readonly password: string;
}

interface Line extends MilvusCredentials {
  readonly server: string;
  readonly tls: boolean;
}

const VARIABLE = 'TRAWL_MILVUS_CREDENTIALS';

/**
 * The credentials for an address, from the lines `milvus://USER:PASSWORD@HOST[:PORT]` of the file that TRAWL_MILVUS_CREDENTIALS_FILE
 * names, or of TRAWL_MILVUS_CREDENTIALS. A line belongs to one server, so that another server never gets its password; and a line with
 * `milvus+tls` only to its addresses with TLS. Without a user in the address, the first line of its server holds. Undefined if there is
 * none.
 *
 * @throws TrawlError CONFIG_INVALID for a file that cannot be read, a line of another form, or if the address has a user without a line.
 * No message has a user or password.
 */
export function credentialsFor({ server, tls, user }: MilvusAddress): MilvusCredentials | undefined {
  const found = credentialLines(VARIABLE, parseLine).find(
    (line) => line.server === server && line.tls === tls && (user === undefined || line.user === user),
  );
  if (found !== undefined || user === undefined) return found;
  throw new TrawlError(
    'CONFIG_INVALID',
    `The address of Milvus has a user, of whom no password for ${tls ? 'milvus+tls' : 'milvus'}://${server} is known.${PASSWORD_ADVICE}`,
  );
}

/**
 * What to check after the server refused a call: the line that was used, or why none was. Shows no user and no password.
 *
 * @param used what `credentialsFor` returned.
 */
export function credentialsAdvice({ server, tls }: MilvusAddress, used: MilvusCredentials | undefined): string {
  const place = `milvus${tls ? '+tls' : ''}://${server}`;
  const source = credentialSource(VARIABLE);
  if (used !== undefined)
    return ` Check user and password in the line for ${place} of ${source}, and the user's privileges.`;
  const reason =
    source === undefined ? `neither ${VARIABLE}_FILE nor ${VARIABLE} is set` : `${source} has no line for ${place}`;
  return ` No password was sent, because ${reason}.${PASSWORD_ADVICE}`;
}

function parseLine(text: string, place: string): Line {
  const url = /^milvus(\+tls)?:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : undefined;
  const isComplete =
    url !== undefined &&
    [url.hostname, url.username, url.password].every((part) => part !== '') &&
    /^\/?$/.test(url.pathname) &&
    url.search === '' &&
    url.hash === '';
  if (isComplete) {
    try {
      return {
        server: `${url.hostname.toLowerCase()}:${url.port === '' ? DEFAULT_PORT : url.port}`,
        tls: /^milvus\+tls:$/i.test(url.protocol),
        user: decodeURIComponent(url.username),
        password: decodeURIComponent(url.password),
      };
    } catch {
      // Not percent-encoded: the same advice.
    }
  }
  throw new TrawlError(
    'CONFIG_INVALID',
    `${place} is not milvus://USER:PASSWORD@HOST[:PORT] (or milvus+tls://…). In user and password, \`@\`, \`:\`, \`/\`, \`%\`, \`,\` and spaces are percent-encoded.`,
  );
}
