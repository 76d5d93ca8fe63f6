import { TrawlError } from '../../base/errors.ts';

/** Where an index of OpenSearch is. */
export interface OpenSearchAddress {
  /** HOST:PORT, of one node or more. */
  readonly servers: readonly string[];
  readonly tls: boolean;
  /** Name of an index, or an alias of one. */
  readonly index: string;
}

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
      'has an @: user and password are not part of it, but of TRAWL_OPENSEARCH_CREDENTIALS or the file that TRAWL_OPENSEARCH_CREDENTIALS_FILE names',
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
  return { servers: hosts.split(',').map(serverOf), tls: /https$/i.test(scheme), index };
}

/** HOST:PORT. @throws TrawlError CONFIG_INVALID. */
export function serverOf(host: string): string {
  const url = URL.canParse(`http://${host}`) ? new URL(`http://${host}`) : undefined;
  if (url === undefined || host === '' || url.pathname !== '/')
    throw invalid('has no host, or one that cannot be parsed');
  // URL leaves out port 80, which is a port like any other here.
  const port = /:(\d+)$/.exec(host)?.[1] ?? String(DEFAULT_PORT);
  return `${url.hostname}:${port}`;
}

/** The address for messages, logs and replies. */
export function shownAddress({ servers, tls, index }: OpenSearchAddress): string {
  return `opensearch${tls ? '+https' : ''}://${servers.join(',')}/${index}`;
}

function invalid(reason: string): TrawlError {
  return new TrawlError('CONFIG_INVALID', `The address of OpenSearch ${reason}; ${EXPECTED}.`);
}
