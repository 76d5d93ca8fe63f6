import type { EncoderInput } from '../../src/encoder/text-encoder.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';
import { isCodeOfQuery } from '../../src/search/calls/query-errors.ts';
import { hasOtherHits } from '../../src/search/calls/query-outcome.ts';
import { NativeApi, type NativeApiOptions, type NativeReply } from '../../src/stores/trawl-server/native-api.ts';
import { bm25Fields } from '../../src/stores/trawl-server/search-fields.ts';
import { asSearchReply, idText, type ReplyHit, type SearchResult } from '../../src/stores/trawl-server/search-reply.ts';
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

/** Queries, and passages, per request: small enough for the limits of a server with its defaults. */
const QUERIES_PER_REQUEST = 64;
const PASSAGES_PER_REQUEST = 256;
/** Shortest text that a hit can have in a reply. */
const LEAST_CHARACTERS = 20;

/** A running Trawl server that recorded queries are asked again, by /v1/search. Waits while the server answers 429 or 503. */
export class ServerTarget implements ReplayTarget {
  readonly #api: NativeApi;

  /** @param url of the server, also with the path of an index: `http://host:8000/indexes/NAME`. */
  constructor(url: string, options: NativeApiOptions = {}) {
    this.#api = new NativeApi(url, options);
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
      const reply = await this.#api.send('/v1/search', body, signal);
      if (!reply.ok) {
        const refusal = this.#refusal(reply);
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
      const known = asSearchReply(reply.json);
      if (known?.results.length !== part.length) throw this.#api.failed('its reply is not a reply of /v1/search');
      const { name, generation } = known.index;
      index = name;
      outcomes.push(...known.results.map((result) => outcomeOf(result, generation)));
    }
    return { index, outcomes };
  }

  async passages(ids: readonly string[], signal: AbortSignal | undefined): Promise<Map<string, KnownPassage> | null> {
    const known = new Map<string, KnownPassage>();
    for (let start = 0; start < ids.length; start += PASSAGES_PER_REQUEST) {
      const part = ids.slice(start, start + PASSAGES_PER_REQUEST);
      const reply = await this.#api.send('/v1/passages', { ids: part }, signal);
      if (!reply.ok) {
        this.#refusal(reply);
        return null;
      }
      const { passages } = reply.json as { passages: readonly ({ document: object } | null)[] };
      for (const [i, passage] of passages.entries()) {
        if (passage === null) continue;
        const { title, contents } = documentFields(JSON.stringify(passage.document));
        known.set(part[i]!, { title, contents });
      }
    }
    return known;
  }

  /** The code of a refusal that concerns one request. @throws TrawlError for any other error. */
  #refusal({ status, code, message }: Extract<NativeReply, { ok: false }>): string {
    if (code !== undefined && REFUSED.has(code)) return code;
    throw this.#api.failed(`it answered ${status}${message === '' ? '' : `: ${message}`}`);
  }
}

/** The settings of a call as fields of /v1/search. */
function settingsOf({ bm25, bm25Order, views: _, ...call }: KeyedCall): object {
  const ranking = { bm25, bm25Order };
  return { ...call, ...bm25Fields(ranking) };
}

function outcomeOf(result: SearchResult, generation: string): TargetOutcome {
  if (!result.ok) return { ok: false, code: result.error.code, ofQuery: isCodeOfQuery(result.error.code) };
  // Such hits say nothing about the index.
  if (hasOtherHits(result.perturbed)) return { ok: false, code: 'PERTURBED', ofQuery: false };
  return { ok: true, generation, hits: result.hits.map(hitOf) };
}

function hitOf({ index, row, id, title, score, text }: ReplyHit): TargetHit {
  return { row, id: idText(id), score, title, contents: text, index };
}
