import { TrawlError } from '../../base/errors.ts';
import { type AddressForm, credentialLines, type StoreCredentials } from '../published/credential-lines.ts';

export interface OpenSearchAddress {
  /** HOST:PORT, of one node or more. */
  readonly servers: readonly string[];
  readonly tls: boolean;
  /** Name of an index, or an alias of one. */
  readonly index: string;
}

const CREDENTIALS = 'TRAWL_OPENSEARCH_CREDENTIALS';
const FORM: AddressForm = { scheme: 'opensearch', tlsScheme: 'opensearch+https', variable: CREDENTIALS, readLine };
const DEFAULT_PORT = 9_200;
/** OpenSearch's own rule for names; the name of the index of files is longer by 6 bytes. */
const NAME = /^[a-z0-9.][a-z0-9._+-]{0,240}$/;
const EXPECTED = 'expected opensearch://HOST[:PORT][,HOST…]/INDEX, or opensearch+https:// for TLS';

/** Whether a text names an index in OpenSearch, not a folder. */
export function isOpenSearchAddress(text: string): boolean {
  return /^opensearch(\+https?)?:/i.test(text);
}

/**
 * Parses `opensearch://HOST[:PORT][,HOST[:PORT]…]/INDEX`. User and password come from the environment (`credentialsFor`).
 *
 * @throws TrawlError CONFIG_INVALID. The message does not repeat the address, which may have a password.
 */
export function parseOpenSearchAddress(text: string): OpenSearchAddress {
  const [, scheme, rest] = /^(opensearch(?:\+https?)?):\/\/(.*)$/is.exec(text) ?? [];
  if (scheme === undefined || rest === undefined) throw invalid('cannot be parsed');
  if (rest.includes('@')) {
    throw invalid(
      `has an @: user and password are not part of it, but of ${CREDENTIALS} or the file that ${CREDENTIALS}_FILE names`,
    );
  }
  if (/[?#]/.test(rest)) throw invalid('has a query or a fragment');
  const slash = rest.indexOf('/');
  const [hosts, index] = slash < 0 ? [rest, ''] : [rest.slice(0, slash), rest.slice(slash + 1)];
  if (index === '') throw invalid('has no index');
  if (!NAME.test(index) || index === '.' || index === '..') {
    throw invalid(
      'has a name of the index that OpenSearch does not allow: names have lower-case letters, digits, dots, dashes, plus signs and underscores, and begin with a letter, digit or dot',
    );
  }
  const servers = hosts.split(',').map(serverOf);
  if (servers.includes(undefined)) throw invalid('has no host, or one that cannot be parsed');
  return { servers: servers as string[], tls: /https$/i.test(scheme), index };
}

/** HOST:PORT of a text HOST[:PORT]; undefined if it cannot be parsed. */
function serverOf(host: string): string | undefined {
  if (host === '' || !URL.canParse(`http://${host}`)) return undefined;
  const url = new URL(`http://${host}`);
  if (url.href !== `http://${url.host}/`) return undefined;
  // URL leaves out port 80, which is a port like any other here.
  return `${url.hostname}:${/:(\d+)$/.exec(host)?.[1] ?? DEFAULT_PORT}`;
}

function readLine(text: string): StoreCredentials | undefined {
  const [, tls = '', user = '', password = '', host = ''] =
    /^opensearch(\+https?)?:\/\/([^:@/]+):([^:@/]+)@([^@/]+)\/?$/i.exec(text) ?? [];
  const server = serverOf(host);
  return server === undefined ? undefined : { server, tls: /https$/i.test(tls), user, password };
}

export function shownAddress({ servers, tls, index }: OpenSearchAddress): string {
  return `opensearch${tls ? '+https' : ''}://${servers.join(',')}/${index}`;
}

function invalid(reason: string): TrawlError {
  return new TrawlError('CONFIG_INVALID', `The address of OpenSearch ${reason}; ${EXPECTED}.`);
}

/**
 * The credentials for an address. Undefined if no server of the address has a line.
 *
 * @throws TrawlError CONFIG_INVALID as `credentialLines`, or if the servers of the address have different lines.
 */
export function credentialsFor({ servers, tls }: OpenSearchAddress): StoreCredentials | undefined {
  const lines = credentialLines(FORM);
  const found = servers.map((server) => lines.find((line) => line.server === server && line.tls === tls));
  const [first] = found;
  if (found.some((line) => line?.user !== first?.user || line?.password !== first?.password)) {
    throw new TrawlError(
      'CONFIG_INVALID',
      `The servers of the address of OpenSearch have different credentials. Give each of them a line with the same user and password in ${CREDENTIALS}_FILE or ${CREDENTIALS}.`,
    );
  }
  return first;
}
