import { documentFields } from '../../src/index/passages/document-fields.ts';
import { isCodeOfQuery } from '../../src/search/calls/query-errors.ts';
import { hasOtherHits } from '../../src/search/calls/query-outcome.ts';
import { NativeApi, type NativeApiOptions, type NativeReply } from '../../src/stores/trawl-server/native-api.ts';
import { asSearchReply, bm25Fields, idText, type SearchResult } from '../../src/stores/trawl-server/native-replies.ts';
import { type KnownPassage, REFUSED, type ReplayTarget, type TargetOutcome } from './replay-target.ts';
import type { KeyedCall } from './stored-answer.ts';

/** Queries and passages of a request: small enough for the limits of a server with its defaults. */
const QUERIES_PER_REQUEST = 64;
const PASSAGES_PER_REQUEST = 256;
/** Shortest text that a hit can have in a reply. */
const LEAST_CHARACTERS = 20;

/**
 * A running Trawl server that recorded queries are asked again, by /v1/search. Waits while the server answers 429 or 503.
 *
 * @param url of the server, also with the path of an index: `http://host:8000/indexes/NAME`.
 */
export function serverTarget(url: string, options: NativeApiOptions = {}): ReplayTarget {
  const api = new NativeApi(url, options);
  /** The code of a refusal that concerns one request. @throws TrawlError for any other error. */
  const codeOf = ({ status, code, message }: Extract<NativeReply, { ok: false }>): string => {
    if (code !== undefined && REFUSED.has(code)) return code;
    throw api.failed(`it answered ${status}${message === '' ? '' : `: ${message}`}`);
  };
  const search: ReplayTarget['search'] = async (queries, call, { texts, signal }) => {
    const outcomes: TargetOutcome[] = [];
    let index = '';
    for (let start = 0; start < queries.length; start += QUERIES_PER_REQUEST) {
      const part = queries.slice(start, start + QUERIES_PER_REQUEST);
      const body = { queries: part, ...searchFields(call), maxChars: texts ? undefined : LEAST_CHARACTERS };
      const reply = await api.send('/v1/search', body, signal);
      if (!reply.ok) {
        const code = codeOf(reply);
        const ofQuery = isCodeOfQuery(code);
        if (!ofQuery || part.length === 1) {
          outcomes.push(...part.map(() => ({ ok: false, code, ofQuery }) as const));
          continue;
        }
        // One of them, such as a text that is too long, made the server refuse all.
        for (const query of part) {
          const alone = await search([query], call, { texts, signal });
          if (alone.index !== '') index = alone.index;
          outcomes.push(...alone.outcomes);
        }
        continue;
      }
      const known = asSearchReply(reply.json);
      if (known?.results.length !== part.length) throw api.failed('its reply is not a reply of /v1/search');
      const { name, generation } = known.index;
      index = name;
      outcomes.push(...known.results.map((result) => targetOutcome(result, generation)));
    }
    return { index, outcomes };
  };
  return {
    search,
    async passages(ids, signal) {
      const known = new Map<string, KnownPassage>();
      for (let start = 0; start < ids.length; start += PASSAGES_PER_REQUEST) {
        const part = ids.slice(start, start + PASSAGES_PER_REQUEST);
        const reply = await api.send('/v1/passages', { ids: part }, signal);
        if (!reply.ok) {
          codeOf(reply);
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
    },
  };
}

function searchFields({ bm25, bm25Order, views: _, ...call }: KeyedCall): object {
  return { ...call, ...bm25Fields({ bm25, bm25Order }) };
}

function targetOutcome(result: SearchResult, generation: string): TargetOutcome {
  if (!result.ok) return { ok: false, code: result.error.code, ofQuery: isCodeOfQuery(result.error.code) };
  // Such hits say nothing about the index.
  if (hasOtherHits(result.perturbed)) return { ok: false, code: 'PERTURBED', ofQuery: false };
  const hits = result.hits.map(({ index, row, id, title, score, text }) => ({
    row,
    id: idText(id),
    score,
    title,
    contents: text,
    index,
  }));
  return { ok: true, generation, hits };
}
