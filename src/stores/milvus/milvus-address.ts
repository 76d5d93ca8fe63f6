import { TrawlError } from '../../base/errors.ts';

/** Where a collection is. */
export interface MilvusAddress {
  /** HOST:PORT. */
  readonly server: string;
  readonly tls: boolean;
  /** Whose password `credentialsFor` has. */
  readonly user: string | undefined;
  readonly database: string;
  /** Name of a collection, or an alias of one. */
  readonly collection: string;
}

export const DEFAULT_PORT = 19_530;
export const PASSWORD_ADVICE =
  ' Put the line milvus://USER:PASSWORD@HOST[:PORT] into a file, and its path into the environment variable TRAWL_MILVUS_CREDENTIALS_FILE.';
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
    throw invalid(
      'has a password, which the list of processes and the history of the shell would show',
      PASSWORD_ADVICE,
    );
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
      `has a name of the ${what} that Milvus does not allow: names have letters, digits and underscores, and begin with no digit` +
        (url.pathname.includes('@') ? '. A user or password with `@`, `:` or `/` has to be percent-encoded' : ''),
    );
  }
  return {
    server: `${url.hostname.toLowerCase()}:${url.port === '' ? DEFAULT_PORT : url.port}`,
    tls: /^milvus\+tls:$/i.test(url.protocol),
    user: url.username === '' ? undefined : decoded(url.username),
    database,
    collection,
  };
}

/** The address for messages, logs and replies: without user and password. */
export function shownAddress({ server, tls, database, collection }: MilvusAddress): string {
  return `milvus${tls ? '+tls' : ''}://${server}/${database}/${collection}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid('has a user that is not percent-encoded correctly');
  }
}

function invalid(reason: string, advice = ''): TrawlError {
  return new TrawlError('CONFIG_INVALID', `The address of Milvus ${reason}; ${EXPECTED}.${advice}`);
}
