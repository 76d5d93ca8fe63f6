import { TrawlError } from '../../base/errors.ts';

/** Errors of OpenSearch that do not depend on the request: overload, a node that joins or leaves, a shard that moves. */
const RETRIABLE_STATUS: readonly number[] = [429, 502, 503, 504];

/** A failed call, as the retries see it. Its message has OpenSearch's type and reason, never the request. */
export class OpenSearchFailure extends Error {
  readonly isMissing: boolean;
  readonly isRefused: boolean;
  readonly isLate: boolean;
  /** Whether another attempt may succeed at once. Not after a time-out, which would only double the wait. */
  readonly isWorthRetrying: boolean;
  /** What to do about it; undefined: check that OpenSearch runs. */
  readonly advice: string | undefined;

  private constructor(
    reason: string,
    flags: { missing?: boolean; refused?: boolean; late?: boolean; retry?: boolean; advice?: string } = {},
  ) {
    super(reason);
    this.isMissing = flags.missing === true;
    this.isRefused = flags.refused === true;
    this.isLate = flags.late === true;
    this.isWorthRetrying = flags.retry === true;
    this.advice = flags.advice;
  }

  /** Of a reply with an error, or of one search or row of it. */
  static ofStatus(status: number, error: unknown): OpenSearchFailure {
    const { type, reason } = causeOf(error);
    return new OpenSearchFailure(`${reason} (${type}, status ${status})`, {
      missing: status === 404 && type === 'index_not_found_exception',
      // A blocked index, such as one whose disk is full, has the status 403 too.
      refused: status === 401 || (status === 403 && type !== 'cluster_block_exception'),
      retry: RETRIABLE_STATUS.includes(status),
    });
  }

  /** Of a reply that arrived, but lacks results. */
  static incomplete(reason: string): OpenSearchFailure {
    return new OpenSearchFailure(reason, { retry: true });
  }

  /** Of what the client throws: its errors hold the whole request, so that only some of their fields are read. */
  static ofThrown(thrown: unknown): OpenSearchFailure {
    if (thrown instanceof OpenSearchFailure) return thrown;
    const { name, message, meta } = thrown as {
      name?: string;
      message?: string;
      meta?: { statusCode?: number | null; body?: { error?: unknown } };
    };
    switch (name) {
      case 'ResponseError':
        return OpenSearchFailure.ofStatus(meta?.statusCode ?? 0, meta?.body?.error);
      case 'TimeoutError':
        return new OpenSearchFailure('it did not answer in time', { late: true });
      case 'ConnectionError':
      case 'NoLivingConnectionsError': {
        const advice = tlsAdvice(message ?? '');
        return advice === undefined
          ? new OpenSearchFailure(message ?? name, { retry: true })
          : new OpenSearchFailure(message ?? name, { advice });
      }
      case 'DeserializationError':
        return new OpenSearchFailure('its answer is not JSON');
      default:
        return new OpenSearchFailure(name === undefined ? 'unknown error' : `the client failed (${name})`);
    }
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

function tlsAdvice(message: string): string | undefined {
  return TLS_ADVICE.find(([pattern]) => pattern.test(message))?.[1];
}

/** The first cause of an error: a failed search has one for each shard, within one that says only that it failed. */
function causeOf(error: unknown): { type: string; reason: string } {
  if (typeof error === 'string') return { type: 'error', reason: error };
  const { type, reason, root_cause, caused_by } = (error ?? {}) as {
    type?: string;
    reason?: string;
    root_cause?: readonly unknown[];
    caused_by?: unknown;
  };
  const [root] = root_cause ?? [];
  if (root !== undefined && root !== error) {
    const found = root as { type?: string; reason?: string; caused_by?: { reason?: string } };
    const deeper = found.caused_by?.reason;
    return {
      type: found.type ?? 'error',
      reason: `${found.reason ?? 'no reason given'}${deeper === undefined ? '' : `: ${deeper}`}`,
    };
  }
  if (reason === undefined && caused_by !== undefined) return causeOf(caused_by);
  return { type: type ?? 'error', reason: reason ?? 'no reason given' };
}

/** Seconds after which a request that OpenSearch did not answer may be sent again. */
const RETRY_AFTER_S = 5;

/** @param server shown in the message. */
export function storeError(server: string, doing: string, failure: OpenSearchFailure): TrawlError {
  const reason = failure.message.replaceAll(/\s+/g, ' ').slice(0, 300);
  if (failure.isRefused) {
    return new TrawlError(
      'STORE_REFUSED',
      `OpenSearch at ${server} refuses to ${doing}: ${reason}. Check its line in TRAWL_OPENSEARCH_CREDENTIALS or the file of TRAWL_OPENSEARCH_CREDENTIALS_FILE, and the user's permissions.`,
    );
  }
  return new TrawlError(
    'STORE_FAILED',
    `OpenSearch at ${server} could not ${doing}: ${reason}. ${failure.advice ?? 'Check that it runs and is reachable; the request can be sent again.'}`,
    { details: { retryAfterS: RETRY_AFTER_S } },
  );
}

/** The error for a call whose index does not exist. */
export function missing(server: string, failure: OpenSearchFailure): TrawlError {
  return new TrawlError(
    'INDEX_NOT_FOUND',
    `OpenSearch at ${server} has no such index (${failure.message}). Publish an index with \`trawl publish\`, or correct the address.`,
  );
}
