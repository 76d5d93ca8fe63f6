import { TrawlError } from '../../base/errors.ts';
import {
  type AddressForm,
  credentialLines,
  credentialSource,
  type StoreCredentials,
} from '../published/credential-lines.ts';

export interface MilvusAddress {
  readonly server: string;
  readonly tls: boolean;
  /** The user whose password `credentialsFor` returns. */
  readonly user: string | undefined;
  readonly database: string;
  /** Name of a collection, or an alias of one. */
  readonly collection: string;
}

const CREDENTIALS = 'TRAWL_MILVUS_CREDENTIALS';
const FORM: AddressForm = { scheme: 'milvus', tlsScheme: 'milvus+tls', variable: CREDENTIALS, readLine };
const DEFAULT_PORT = 19_530;
const PASSWORD_ADVICE = `Put the line milvus://USER:PASSWORD@HOST[:PORT] into a file, and its path into the environment variable ${CREDENTIALS}_FILE.`;
/** Milvus's own rule for names. */
const NAME = /^[A-Za-z_]\w{0,254}$/;
const EXPECTED = 'expected milvus://[USER@]HOST[:PORT]/DATABASE/COLLECTION, or milvus+tls:// for TLS';

/** Whether a text names an index in Milvus, not a folder. */
export function isMilvusAddress(text: string): boolean {
  return /^milvus(\+tls)?:/i.test(text);
}

/**
 * Parses `milvus://[USER@]HOST[:PORT]/DATABASE/COLLECTION`; the database may be left out. A user with `@`, `:` or `/` is percent-encoded. A
 * password is refused: every user of the machine reads it in the list of processes, and it stays in the shell's history.
 *
 * @throws TrawlError CONFIG_INVALID. The message does not repeat the address, which may have a password.
 */
export function parseMilvusAddress(text: string): MilvusAddress {
  if (!isMilvusAddress(text) || !URL.canParse(text)) throw invalid('cannot be parsed');
  const url = new URL(text);
  if (url.hostname === '') throw invalid('has no host');
  if (url.search !== '' || url.hash !== '') throw invalid('has a query or a fragment');
  if (url.password !== '') {
    const problem = 'has a password, which the list of processes and the history of the shell would show';
    throw invalid(problem, ` ${PASSWORD_ADVICE}`);
  }
  const names = url.pathname.replace(/^\//, '').split('/');
  const [database, collection] = names.length === 1 ? ['default', names[0]!] : (names as [string, string]);
  if (names.length > 2) throw invalid(`has ${names.length} names after the host`);
  for (const [what, name] of [
    ['database', database],
    ['collection', collection],
  ] as const) {
    if (NAME.test(name)) continue;
    if (name === '') throw invalid(`has no ${what}`);
    // The name is not shown: it is part of the password where that has a `/`.
    throw invalid(
      `has a name of the ${what} that Milvus does not allow: names have letters, digits and underscores, and do not begin with a digit` +
        (url.pathname.includes('@') ? '. A user or password with `@`, `:` or `/` has to be percent-encoded' : ''),
    );
  }
  const user = url.username === '' ? undefined : decodedUser(url.username);
  return { ...serverOf(url), user, database, collection };
}

function serverOf({ protocol, hostname, port }: URL): Pick<MilvusAddress, 'server' | 'tls'> {
  const server = `${hostname.toLowerCase()}:${port === '' ? DEFAULT_PORT : port}`;
  return { server, tls: protocol === 'milvus+tls:' };
}

function readLine(text: string): StoreCredentials | undefined {
  if (!/^milvus(\+tls)?:\/\//i.test(text) || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  const { hostname, username: user, password, pathname, search, hash } = url;
  const isComplete = hostname !== '' && user !== '' && password !== '';
  return isComplete && /^\/?$/.test(pathname + search + hash) ? { ...serverOf(url), user, password } : undefined;
}

/** The address for messages, logs and replies: without user and password. */
export function shownAddress({ server, tls, database, collection }: MilvusAddress): string {
  return `milvus${tls ? '+tls' : ''}://${server}/${database}/${collection}`;
}

function decodedUser(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid('has a user that is not percent-encoded correctly');
  }
}

function invalid(reason: string, advice = ''): TrawlError {
  return new TrawlError('CONFIG_INVALID', `The address of Milvus ${reason}; ${EXPECTED}.${advice}`);
}

/**
 * The credentials for an address. If the address has no user, the first line of its server counts. Undefined without a line.
 *
 * @throws TrawlError CONFIG_INVALID as `credentialLines`, or if the address has a user without a line. No message has a user or password.
 */
export function credentialsFor({ server, tls, user }: MilvusAddress): StoreCredentials | undefined {
  const found = credentialLines(FORM).find(
    (line) => line.server === server && line.tls === tls && (user === undefined || line.user === user),
  );
  if (found !== undefined || user === undefined) return found;
  throw new TrawlError(
    'CONFIG_INVALID',
    `The address of Milvus has a user without a password for ${tls ? 'milvus+tls' : 'milvus'}://${server}. ${PASSWORD_ADVICE}`,
  );
}

/** What to check after a refused call: the line that was used, or why there was none. Shows neither user nor password. */
export function credentialsAdvice({ server, tls }: MilvusAddress, used: StoreCredentials | undefined): string {
  const place = `milvus${tls ? '+tls' : ''}://${server}`;
  const source = credentialSource(FORM);
  if (used !== undefined)
    return `Check user and password in the line for ${place} of ${source}, and the user's privileges.`;
  const reason =
    source === undefined
      ? `neither ${CREDENTIALS}_FILE nor ${CREDENTIALS} is set`
      : `${source} has no line for ${place}`;
  return `No password was sent, because ${reason}. ${PASSWORD_ADVICE}`;
}
