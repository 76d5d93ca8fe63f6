import { TrawlError } from '../../src/base/errors.ts';
import { retryAfterMs, TransientFailure } from '../../src/base/net/retries.ts';

/** A refused request, with the facts for the error message. */
export interface RefusedRequest {
  readonly status: number;
  readonly headers: Headers;
  readonly endpoint: string;
  /** `org/name`, or `datasets/org/name`: the address of the repository's page. */
  readonly repository: string;
  readonly revision?: string;
  /** Path of the requested file in the repository. */
  readonly path?: string;
  readonly withToken: boolean;
}

/** The error for a reply, by its status and the hub's X-Error-Code. */
export function failureOf(refused: RefusedRequest): TrawlError | TransientFailure {
  const { status, headers } = refused;
  if (status === 408 || status === 429 || status >= 500) {
    return new TransientFailure(`the server replies ${status}`, {
      retryAfterMs: retryAfterMs(headers),
    });
  }
  const hubCode = headers.get('x-error-code') ?? '';
  const details = { status, hubCode, repository: refused.repository };
  const page = `${refused.endpoint}/${refused.repository}`;
  if (hubCode === 'GatedRepo' || status === 403) {
    const way = refused.withToken
      ? `Accept its terms at ${page} with the account of the token, and make sure that the token may read gated repositories.`
      : `Accept its terms at ${page}, then set HF_TOKEN to a token of that account (or run \`hf auth login\`).`;
    const what = hubCode === 'GatedRepo' ? 'is gated' : `is refused (${status})`;
    return new TrawlError('HUB_ACCESS_DENIED', `${refused.repository} ${what}${quotedMessage(headers)}. ${way}`, {
      details,
    });
  }
  if (status === 401 && (refused.withToken || (hubCode !== '' && hubCode !== 'RepoNotFound'))) {
    return new TrawlError(
      'HUB_ACCESS_DENIED',
      refused.withToken
        ? `The hub does not accept the token for ${refused.repository}${quotedMessage(headers)}. Create a new one at ` +
            `${refused.endpoint}/settings/tokens, or unset HF_TOKEN for a public repository.`
        : `${refused.repository} needs a token${quotedMessage(headers)}. Set HF_TOKEN, or run \`hf auth login\`.`,
      { details },
    );
  }
  if (status === 401 || status === 404) {
    if (hubCode === 'RevisionNotFound') {
      return new TrawlError(
        'HUB_NOT_FOUND',
        `${refused.repository} has no revision ${JSON.stringify(refused.revision ?? '')}. Give a branch, a tag or a full ` +
          `commit hash; ${page}/commits/main lists them.`,
        { details },
      );
    }
    if (hubCode === 'EntryNotFound' || (refused.path !== undefined && hubCode === '')) {
      return new TrawlError(
        'HUB_NOT_FOUND',
        `${refused.repository} has no file ${JSON.stringify(refused.path ?? '')} at ${refused.revision ?? 'main'}.`,
        { details },
      );
    }
    const way = refused.withToken
      ? 'or the token has no access to it. Check the spelling and the rights of the token.'
      : 'or it is private. Check the spelling; for a private repository set HF_TOKEN.';
    return new TrawlError('HUB_NOT_FOUND', `The repository ${page} does not exist, ${way}`, { details });
  }
  return new TrawlError(
    'HUB_REPLY_INVALID',
    `${refused.endpoint} replies ${status}; expected 200${quotedMessage(headers)}. Check HF_ENDPOINT.`,
    { details },
  );
}

/** The hub's error message in parentheses, printable characters only; empty if there is none. */
function quotedMessage(headers: Headers): string {
  const text = (headers.get('x-error-message') ?? '').replaceAll(/[^\x20-\x7e]/g, ' ').trim();
  return text === '' ? '' : ` ("${text.slice(0, 200)}")`;
}
