import { StoreFailure } from '../published/store-calls.ts';

/** Errors of OpenSearch that do not depend on the request: overload, a node that joins or leaves, a shard that moves. */
const RETRIABLE_STATUS: readonly number[] = [429, 502, 503, 504];

/** The failure of a reply with an error, or of one search or row of it. */
export function statusFailure(status: number, error: unknown): StoreFailure {
  const { type, reason } = causeOf(error);
  return new StoreFailure(`${reason} (${type}, status ${status})`, {
    missing: status === 404 && type === 'index_not_found_exception' ? 'index' : undefined,
    // A blocked index, such as one whose disk is full, has the status 403 too.
    refused: status === 401 || (status === 403 && type !== 'cluster_block_exception'),
    retry: RETRIABLE_STATUS.includes(status),
  });
}

export function incomplete(reason: string): StoreFailure {
  return new StoreFailure(reason, { retry: true });
}

/** Reads what the client throws. Its errors hold the whole request, so only some of their fields are read. */
export function failureOf(thrown: unknown): StoreFailure {
  if (thrown instanceof StoreFailure) return thrown;
  const { name, message, meta } = thrown as {
    name?: string;
    message?: string;
    meta?: { statusCode?: number | null; body?: { error?: unknown } };
  };
  switch (name) {
    case 'ResponseError':
      return statusFailure(meta?.statusCode ?? 0, meta?.body?.error);
    case 'TimeoutError':
      return new StoreFailure('it did not answer in time');
    case 'ConnectionError':
    case 'NoLivingConnectionsError': {
      const advice = TLS_ADVICE.find(([pattern]) => pattern.test(message ?? ''))?.[1];
      return new StoreFailure(message ?? name, { advice, retry: advice === undefined });
    }
    case 'DeserializationError':
      return new StoreFailure('its answer is not JSON');
    default:
      return new StoreFailure(name === undefined ? 'unknown error' : `the client failed (${name})`);
  }
}

/** What to do about a connection that TLS refuses, which another attempt does not change; the client passes on only Node's message. */
const TLS_ADVICE: readonly (readonly [message: RegExp, advice: string])[] = [
  [
    /self.signed certificate|unable to (get|verify).*certificate/i,
    'Its certificate is of an authority that is not trusted here: name the file with the certificate of the authority in NODE_EXTRA_CA_CERTS.',
  ],
  [/certificate has expired/i, 'Renew the certificate of the server, or correct the clock of this machine.'],
  [/certificate is not yet valid/i, 'Correct the clock of this machine, or wait until the certificate is valid.'],
  [
    /does not match certificate/i,
    'Use a host name that the certificate has, or give the server a certificate for this one.',
  ],
  [
    /wrong version number|packet length too long/i,
    'The server does not use TLS at this port: use opensearch://, or the port with TLS.',
  ],
];

/** The first cause of an error: a failed search has one for each shard, within one that says only that it failed. */
function causeOf(error: unknown): { type: string; reason: string } {
  if (typeof error === 'string') return { type: 'error', reason: error };
  const { type = 'error', reason, root_cause, caused_by } = (error ?? {}) as StatusError;
  const [root] = root_cause ?? [];
  if (root !== undefined) {
    const deeper = root.caused_by?.reason === undefined ? '' : `: ${root.caused_by.reason}`;
    return { type: root.type ?? 'error', reason: `${root.reason ?? 'no reason given'}${deeper}` };
  }
  if (reason === undefined && caused_by !== undefined) return causeOf(caused_by);
  return { type, reason: reason ?? 'no reason given' };
}

interface StatusError {
  readonly type?: string;
  readonly reason?: string;
  readonly root_cause?: readonly StatusError[];
  readonly caused_by?: StatusError;
}
