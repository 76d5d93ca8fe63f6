import {
  NoReply,
  type RepeatedRequestOptions,
  type Reply,
  repeatedRequest,
} from '../evaluation/server/repeated-request.ts';
import type { EncoderInput } from '../src/embedding/text-encoder.ts';
import { TrawlError } from '../src/errors.ts';
import { documentFields } from '../src/passages/document-fields.ts';
import { parseNumbers } from '../src/passages/exact-numbers.ts';
import { hasOtherHits, type Perturbed } from '../src/retrieval/calls/perturbed.ts';
import { isCodeOfQuery } from '../src/retrieval/calls/query-errors.ts';
import type { KeyedCall } from './answer-key.ts';
import {
  type KnownPassage,
  REFUSED,
  type ReplayTarget,
  type TargetAnswer,
  type TargetHit,
  type TargetOutcome,
  type TargetSearchOptions,
} from './replay-target.ts';

export type ServerTargetOptions = Omit<RepeatedRequestOptions, 'signal' | 'timeoutMs'>;

/** Queries, and passages, per request: small enough for the limits of a server with its defaults. */
const QUERIES_PER_REQUEST = 64;
const PASSAGES_PER_REQUEST = 256;
/** Shortest text that a hit can have in a reply. */
const LEAST_CHARACTERS = 20;

interface SearchReply {
  readonly index: { readonly name: string; readonly generation: string };
  readonly results: readonly (
    | { readonly ok: true; readonly hits: readonly ReplyHit[]; readonly perturbed?: Perturbed }
    | { readonly ok: false; readonly error: { readonly code: string } }
  )[];
}

interface ReplyHit {
  readonly index?: string;
  readonly row: number;
  readonly id?: unknown;
  readonly title?: string;
  readonly score: number;
  readonly text: string;
}

/** A running Trawl server that recorded queries are asked again, by /v1/search. Waits while the server answers 429 or 503. */
export class ServerTarget implements ReplayTarget {
  readonly #url: string;
  readonly #options: ServerTargetOptions;

  /** @param url of the server, also with the path of an index: `http://host:8000/indexes/NAME`. */
  constructor(url: string, options: ServerTargetOptions = {}) {
    this.#url = url.replace(/\/+$/, '');
    this.#options = options;
  }

  async search(
    queries: readonly EncoderInput[],
    call: KeyedCall,
    { texts, signal }: TargetSearchOptions,
  ): Promise<TargetAnswer> {
    const outcomes: TargetOutcome[] = [];
    let index = '';
    for (let start = 0; start < queries.length; start += QUERIES_PER_REQUEST) {
      const part = queries.slice(start, start + QUERIES_PER_REQUEST);
      const body = { queries: part, ...settingsOf(call), ...(texts ? {} : { maxChars: LEAST_CHARACTERS }) };
      const reply = await this.#post('/v1/search', body, signal);
      const refusal = this.#refusal(reply);
      if (refusal !== undefined) {
        const ofQuery = isCodeOfQuery(refusal);
        if (!ofQuery || part.length === 1) {
          outcomes.push(...part.map(() => ({ ok: false, code: refusal, ofQuery }) as const));
          continue;
        }
        // One of them, such as a text that is too long, made the server refuse all.
        for (const query of part) {
          const alone = await this.search([query], call, { texts, signal });
          if (alone.index !== '') index = alone.index;
          outcomes.push(...alone.outcomes);
        }
        continue;
      }
      const { results, ...head } = this.#parsed(reply) as unknown as SearchReply;
      if (!Array.isArray(results) || results.length !== part.length || typeof head.index?.generation !== 'string') {
        throw this.#failed('its reply is not that of /v1/search');
      }
      const { name, generation } = head.index;
      index = name;
      outcomes.push(...results.map((result) => outcomeOf(result, generation)));
    }
    return { index, outcomes };
  }

  async passages(ids: readonly string[], signal: AbortSignal | undefined): Promise<Map<string, KnownPassage> | null> {
    const known = new Map<string, KnownPassage>();
    for (let start = 0; start < ids.length; start += PASSAGES_PER_REQUEST) {
      const part = ids.slice(start, start + PASSAGES_PER_REQUEST);
      const reply = await this.#post('/v1/passages', { ids: part }, signal);
      if (this.#refusal(reply) !== undefined) return null;
      const { passages } = this.#parsed(reply) as { passages: readonly ({ document: object } | null)[] };
      for (const [i, passage] of passages.entries()) {
        if (passage === null) continue;
        const { title, contents } = documentFields(JSON.stringify(passage.document));
        known.set(part[i]!, { title, contents });
      }
    }
    return known;
  }

  async #post(path: string, body: object, signal: AbortSignal | undefined): Promise<Reply> {
    try {
      return await repeatedRequest(`${this.#url}${path}`, body, { ...this.#options, signal });
    } catch (error) {
      if (!(error instanceof NoReply)) throw error;
      throw this.#failed(`${error.message}, also after ${error.tries} tries`);
    }
  }

  /** The code of a refusal that concerns one request. @throws TrawlError for any other error. */
  #refusal(reply: Reply): string | undefined {
    if (reply.status === 200) return undefined;
    let error: { code?: unknown; message?: unknown } | undefined;
    try {
      error = (JSON.parse(reply.text) as { error?: typeof error }).error;
    } catch {
      // A proxy, for example, answers in HTML.
    }
    if (typeof error?.code === 'string' && REFUSED.has(error.code)) return error.code;
    const said = typeof error?.message === 'string' ? `: ${error.message}` : '';
    throw this.#failed(`it answered ${reply.status}${said}`);
  }

  #parsed({ text }: Reply): object {
    try {
      // Ids beyond 2^53 keep their digits.
      const json: unknown = parseNumbers(text, (source) => {
        const number = Number(source);
        return Number.isInteger(number) && !Number.isSafeInteger(number) ? source : number;
      });
      if (typeof json === 'object' && json !== null) return json;
    } catch {
      // Reported below.
    }
    throw this.#failed('its reply is not JSON');
  }

  #failed(reason: string): TrawlError {
    return new TrawlError('CONFIG_INVALID', `${this.#url} cannot be asked: ${reason}. Expected a Trawl server.`);
  }
}

/** The settings of a call as fields of /v1/search. */
function settingsOf({ bm25, bm25Order, views: _, ...call }: KeyedCall): object {
  if (bm25 === undefined && bm25Order === undefined) return call;
  const { k1Factor = false, ...values } = bm25 ?? {};
  const order = bm25Order === undefined ? {} : { order: bm25Order };
  return { ...call, bm25: { ...(k1Factor ? { profile: 'elasticsearch' } : {}), ...values, ...order } };
}

function outcomeOf(result: SearchReply['results'][number], generation: string): TargetOutcome {
  if (!result.ok) return { ok: false, code: result.error.code, ofQuery: isCodeOfQuery(result.error.code) };
  // Such hits say nothing about the index.
  if (hasOtherHits(result.perturbed)) return { ok: false, code: 'PERTURBED', ofQuery: false };
  return { ok: true, generation, hits: result.hits.map(hitOf) };
}

function hitOf({ index, row, id, title, score, text }: ReplyHit): TargetHit {
  const idText = id === undefined || id === null ? null : typeof id === 'string' ? id : JSON.stringify(id);
  return { row, id: idText, score, title, contents: text, index };
}
