import { TrawlError } from '../../src/base/errors.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import { shownPlace } from '../../src/stores/published/shown-place.ts';
import { checkEndpointOptions } from '../../cli/model/endpoint-options.ts';
import { openReranked } from '../../cli/open/open-reranked.ts';
import { templateOf } from '../../cli/options/query-form.ts';
import { modesOption, rankingOf } from '../../cli/options/ranking-options.ts';
import { checkRerankOptions } from '../../cli/options/rerank-options.ts';
import { retrieverOptions } from '../../cli/options/retriever-options.ts';
import { ownNotes } from './own-passages.ts';
import { searchQuestions } from './search-questions.ts';
import type { Asked, SearchedSystem } from './searched-system.ts';
import type { SystemSpec } from '../../cli/eval/system-text.ts';

/** Ids looked up at once. */
const BATCH_IDS = 4096;

/**
 * Searches an index for all questions. `use` gets the open index afterwards.
 *
 * @param further indexes that are searched with it as one.
 * @param forRun whether the ids must fit in a TREC run.
 * @throws TrawlError of options, of the opening and of the first search that fails.
 */
export async function searchIndex(
  { name, place, options, given, own }: SystemSpec,
  asked: Asked,
  {
    further,
    forRun,
    use,
  }: { readonly further: readonly string[]; readonly forRun: boolean; use(retriever: Retriever): Promise<void> },
): Promise<SearchedSystem> {
  const { questions, k, ownId, gold, signal, note } = asked;
  const modes = modesOption(options, own.has('mode') ? own : given);
  checkRerankOptions(options, given);
  checkEndpointOptions(options.model, given);
  const retrieving = {
    ...retrieverOptions(options),
    signal,
    ...(modes === undefined ? {} : { modes }),
    onWarning: note,
  };
  const { retriever, close } = await openReranked(place, options, retrieving, further);
  try {
    const failed = new Map<string, string>();
    const { run, lists, foundOwn } = await searchQuestions(retriever, questions, {
      form: options['query-form'],
      k,
      ownId,
      // Hybrid search fuses as many rows for one passage more, so that its ranking stays the same.
      ranking: { ...rankingOf(options, retriever.info, k), ...templateOf(options['query-template']) },
      forRun,
      onFailed: (id, error) => failed.set(id, error.message),
      signal,
    });
    await use(retriever);
    const absent = await absentIds(retriever, gold, signal);
    return {
      name,
      what: [
        `index ${shownPlace(place)}`,
        ...[...own].map((option) => `${option}=${String(options[option as keyof typeof options])}`),
      ].join(', '),
      run,
      lists,
      hasIds: true,
      hasTexts: true,
      lacksGold: gold.size > 0 && absent.length === gold.size,
      failed,
      notes: [
        ...failures(name, failed, questions.length),
        ...unknownGold(shownPlace(place), gold, absent),
        ...ownNotes(name, { foundOwn }, run.keys(), asked),
      ],
    };
  } finally {
    await close();
  }
}

function failures(name: string, failed: ReadonlyMap<string, string>, questions: number): string[] {
  const [first] = failed;
  if (first === undefined) return [];
  return [
    `${name}: ${failed.size} of ${questions} questions cannot be searched and are left out of the metrics. The first: ${first[0]}: ${first[1]}`,
  ];
}

function unknownGold(place: string, gold: ReadonlySet<string>, absent: readonly string[]): string[] {
  if (absent.length === 0) return [];
  const all = absent.length === gold.size ? ' Check that the judgements use the ids of this index.' : '';
  return [
    `${absent.length} of ${gold.size} relevant passages are not in ${place}, such as ${JSON.stringify(absent[0])}: no search can find them.${all}`,
  ];
}

/** The ids that the index does not have; empty if it cannot look ids up. */
async function absentIds(retriever: Retriever, ids: ReadonlySet<string>, signal: AbortSignal): Promise<string[]> {
  const all = [...ids];
  const absent: string[] = [];
  for (let start = 0; start < all.length; start += BATCH_IDS) {
    const keys = all.slice(start, start + BATCH_IDS);
    try {
      const { found } = await retriever.find({ by: 'id', keys, limit: 1, signal });
      absent.push(...keys.filter((_, i) => found[i]!.length === 0));
    } catch (error) {
      if (error instanceof TrawlError && error.code === 'NOT_SUPPORTED') return [];
      throw error;
    }
  }
  return absent;
}
