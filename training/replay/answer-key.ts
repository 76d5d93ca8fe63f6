import { isObject } from '../../src/base/objects.ts';
import type { ModelIdentity } from '../../src/encoder/identity/model-identity.ts';
import { applyTemplate, contextOf, type EncoderInput, type TruncateSide } from '../../src/encoder/text-encoder.ts';
import { canonicalFilter } from '../../src/engine/filter/filter.ts';
import { inputOf, isEmbedded, type RetrieveCall, type RetrieveQuery } from '../../src/search/calls/retrieve-call.ts';
import { hybridKey } from '../../src/search/hybrid/hybrid-settings.ts';
import type { SearchMode } from '../../src/search/search-mode.ts';

/** What a recorded answer is looked up by. Two searches with equal keys have the same answer in one generation of an index. */
export interface AnswerKey {
  /** The parts of the query that are searched for, as JSON: `[query]`, or `[question, history, query]`. */
  readonly text: string;
  /** The settings that decide the answer, as JSON with sorted members; defaults are left out. */
  readonly settings: string;
}

/** What of an index decides how a search without settings is answered. */
interface KeyDefaults {
  readonly mode: SearchMode;
  readonly model: Pick<ModelIdentity, 'queryTemplate'> | null;
}

export type KeyedCall = Omit<RetrieveCall, 'queries' | 'signal' | 'allowPartial'>;

/** The key of one query of a call. */
export function answerKey(query: RetrieveQuery, call: KeyedCall, { mode: defaultMode, model }: KeyDefaults): AnswerKey {
  const { bm25, bm25Order = 'row', filter, views = [], hybrid, rerank, template, k } = call;
  const mode = call.mode ?? defaultMode;
  const input = applyTemplate(inputOf(query), template ?? model?.queryTemplate);
  const hasContext = contextOf(input).length > 0;
  const truncate = isEmbedded(query) ? query.truncate : call.truncate;
  const settings: Record<string, unknown> = {
    mode,
    // Without a question both sides cut the end, and BM25 cuts nothing.
    truncate:
      hasContext && mode !== 'bm25' && truncate === 'question' ? ('question' satisfies TruncateSide) : undefined,
    filter: filter === undefined ? undefined : canonicalFilter(filter),
    views: views.length === 0 ? undefined : [...new Set(views)].sort(),
    bm25: mode === 'dense' || bm25 === undefined ? undefined : bm25,
    bm25Order: mode === 'bm25' && bm25Order !== 'row' ? bm25Order : undefined,
    hybrid: mode === 'hybrid' && hybrid !== undefined ? hybridKey(hybrid) : undefined,
    rerank:
      rerank === undefined
        ? undefined
        : {
            // At least k hits are scored, and a longer list changes which passages are best.
            depth: Math.max(rerank.depth, k),
            model: rerank.model,
            allowFailure: rerank.allowFailure === true ? true : undefined,
          },
  };
  return { text: textOf(input, hasContext), settings: sortedJson(settings) };
}

function textOf(input: EncoderInput, hasContext: boolean): string {
  if (typeof input === 'string') return JSON.stringify([input]);
  const { question, history = [], query } = input;
  return JSON.stringify(hasContext ? [question, history, query] : [query]);
}

/** JSON whose members are in the order of their names, in each object. */
function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    isObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
}
