import { hitFields } from '../../corpus/hit-fields.ts';
import { openCorpus } from '../../corpus/open-corpus.ts';
import { comparableText } from '../../src/base/comparable-text.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { percentile, sortedSamples } from '../../src/base/statistics.ts';
import type { QueryTemplate } from '../../src/encoder/identity/model-identity.ts';
import { applyTemplate, composeText } from '../../src/encoder/text-encoder.ts';
import type { SearchDialect } from '../../src/server/dialects/dialect.ts';
import { COMPOSED_SEPARATOR } from '../../src/server/recording/composed-query.ts';
import { withoutLabels } from '../answer-labels.ts';
import { relevantIds } from '../judgements.ts';
import { type EvalQueryForm, queriesOf } from '../query-form.ts';
import type { Question } from '../read-questions.ts';
import { askServer, type ServerAnswers } from '../server/ask-server.ts';
import { checkTrecField } from '../trec-run.ts';
import { type GoldTexts, judgedIds, type MatchedPassages, matchPassages, orderedByScore } from './match-passages.ts';
import { countingPassages, depthOf, ownNotes } from './own-passages.ts';
import { foundPassages } from './search-questions.ts';
import type { Asked, SearchedSystem, ServerReport } from './searched-system.ts';

/** Tries of a request: fewer than other clients make, because a measurement should say that a server is overloaded. */
const ATTEMPTS = 5;

/** A running server that is evaluated. */
export interface ServerSystem {
  readonly name: string;
  readonly url: string;
  readonly dialect: SearchDialect;
  readonly form: EvalQueryForm;
  readonly template: QueryTemplate | undefined;
  /** The file with the server's corpus; undefined: its passages are matched by their ids. */
  readonly corpus: string | undefined;
  readonly concurrency: number;
  readonly queriesPerRequest: number;
  readonly timeoutMs: number;
  readonly apiKey: string | undefined;
}

/**
 * Asks a server for all questions. Its passages are matched with the judgements by their ids, or with `corpus` by their texts.
 *
 * @param forRun whether ids and scores must fit in a TREC run.
 * @throws TrawlError USAGE, with `forRun` also at the first reply with an id that a run cannot contain; CONFIG_INVALID if the server
 * cannot be asked at all.
 */
export async function searchServer(system: ServerSystem, asked: Asked, forRun: boolean): Promise<SearchedSystem> {
  const { name, dialect, corpus, concurrency, queriesPerRequest, timeoutMs, apiKey } = system;
  const { questions, judgements, k, gold, signal, note } = asked;
  // With --corpus only relevant passages have ids, so a question's own passage cannot be recognised.
  const ownId = corpus === undefined ? asked.ownId : undefined;
  const depth = depthOf({ k, ownId });
  const url = system.url.replace(/\/+$/, '');
  if (!dialect.client.batch && queriesPerRequest > 1)
    note(`A request of the dialect ${dialect.name} has one query: --queries-per-request is not used.`);
  const wanted = questions.map((question) => ({ id: question.id, queries: queryTexts(question, system) }));
  const texts = corpus === undefined ? undefined : await goldTexts(corpus, gold, signal);
  const answers = await askServer(
    dialect,
    url,
    wanted.flatMap(({ queries }, i) => queries.map((text, place) => ({ id: `${i} ${place}`, text }))),
    {
      k: depth,
      concurrency,
      queriesPerRequest,
      attempts: ATTEMPTS,
      timeoutMs,
      apiKey,
      signal,
      check(passage) {
        if (forRun) for (const id of judgedIds(passage, texts)) checkTrecField('passage id', id);
      },
    },
  ).catch((error: unknown) => {
    throw depth > k ? withDepth(error, k) : error;
  });
  const matched = matchPassages(
    wanted.flatMap(({ queries }, i) => queries.map((_, place) => answers.lists.get(`${i} ${place}`) ?? [])),
    texts,
    wanted.flatMap(({ id, queries }) => {
      const relevant = relevantIds(judgements.get(id) ?? new Map());
      return queries.map(() => relevant);
    }),
    gold,
  );
  const queryIds = wanted.flatMap(({ id, queries }) => queries.map(() => id));
  const counting = countingPassages(queryIds, matched.lists, { k, ownId });
  const { run, lists } = foundPassages(wanted, counting.lists, k);
  // A fused list has scores of its own.
  const scoresMissing = matched.withoutScore > 0 && lists.size < wanted.length;
  const written = forRun ? orderedByScore(run, scoresMissing) : { run, replaced: false };
  const failed = failedQuestions(wanted, answers.failed);
  const answered = wanted.filter(({ id, queries }) => queries.length > 0 && !failed.has(id)).length;
  return {
    name,
    what: `${dialect.name} at ${url}`,
    run: written.run,
    lists,
    hasIds: matched.by !== null,
    hasTexts: true,
    lacksGold: lacksRelevant(matched, gold),
    failed,
    server: serverReport(dialect, answers, { matchedBy: matched.by, concurrency, queriesPerRequest, answered }),
    notes: [
      ...notesOn(name, dialect, answers, matched, k),
      ...(dialect.client.texts === 'excerpt' &&
      questions.some(({ goldenAnswers = [] }) => withoutLabels(goldenAnswers).length > 0)
        ? [
            `${name}: the replies (${dialect.name}) have excerpts, so answers are looked for in these, not in whole passages.`,
          ]
        : []),
      ...ownNotes(name, counting, run.keys(), { ownId }),
      ...unmatched(name, matched, gold),
      ...(texts === undefined ? [] : missingTexts(corpus!, gold, texts)),
      ...(written.replaced
        ? [`${name}: scores are missing or rise with the rank, so the run has −rank as the scores.`]
        : []),
    ],
  };
}

/** A server may refuse more than k passages: its error then says why one more was asked for. */
function withDepth(error: unknown, k: number): unknown {
  if (!(error instanceof TrawlError) || error.code !== 'CONFIG_INVALID') return error;
  const hint = `It was asked for ${k + 1} passages a query, because the question's own does not count; --ignore-identical-ids no asks for ${k}.`;
  return new TrawlError(error.code, `${error.message} ${hint}`, { cause: error });
}

/** The texts of the queries: question and query of an agent with ` [SEP] ` in between, as Agentic-R's clients compose them. */
function queryTexts(question: Question, { form, template }: ServerSystem): string[] {
  return queriesOf(question, form).map((query) =>
    composeText(applyTemplate(query, template), '', COMPOSED_SEPARATOR.trim()),
  );
}

/** A question fails if one of its queries does. */
function failedQuestions(
  wanted: readonly { readonly id: string; readonly queries: readonly string[] }[],
  failed: ReadonlyMap<string, string>,
): ReadonlyMap<string, string> {
  return new Map(
    wanted.flatMap(({ id, queries }, i) => {
      const place = queries.findIndex((_, place) => failed.has(`${i} ${place}`));
      return place === -1 ? [] : [[id, failed.get(`${i} ${place}`)!] as const];
    }),
  );
}

function serverReport(
  dialect: SearchDialect,
  { latenciesMs, requests, repeated, seconds, failed }: ServerAnswers,
  {
    matchedBy,
    concurrency,
    queriesPerRequest,
    answered,
  }: Pick<ServerReport, 'matchedBy' | 'concurrency' | 'queriesPerRequest'> & { readonly answered: number },
): ServerReport {
  const samples = latenciesMs.length === 0 ? undefined : sortedSamples(latenciesMs);
  const reasons: Record<string, number> = {};
  for (const reason of failed.values()) reasons[reason] = (reasons[reason] ?? 0) + 1;
  return {
    dialect: dialect.name,
    matchedBy,
    concurrency,
    queriesPerRequest: dialect.client.batch ? queriesPerRequest : 1,
    requests,
    repeated,
    latencyMs:
      samples === undefined
        ? null
        : { p50: percentile(samples, 50), p95: percentile(samples, 95), p99: percentile(samples, 99) },
    questionsPerSecond: seconds > 0 ? answered / seconds : 0,
    failures: reasons,
  };
}

function* notesOn(
  name: string,
  dialect: SearchDialect,
  { lists, failed }: ServerAnswers,
  { by, passages, withoutId }: MatchedPassages,
  k: number,
): Generator<string, void> {
  if (failed.size > 0) {
    const [reason] = failed.values();
    yield `${name}: ${failed.size} of ${failed.size + lists.size} searches failed, such as: ${reason}. Their questions are left out of the metrics.`;
  }
  if (by === null)
    yield `${name}: the replies (${dialect.name}) have no ids, so judgements of passages are not used. Pass --corpus FILE, the server's corpus, to find the relevant passages by their texts.`;
  else if (by === 'id' && withoutId > 0)
    yield `${name}: ${withoutId} of ${passages} passages have no id and count as not relevant. Pass --corpus FILE to find the relevant passages by their texts.`;
  const short = [...lists.values()].filter((list) => list.length < k).length;
  if (short > 0) yield `${name}: ${short} of ${lists.size} lists have fewer than ${k} passages.`;
}

/** Whether judgements do not fit the server at all, which the metrics show only as zeros. */
function lacksRelevant({ by, passages, relevant }: MatchedPassages, gold: ReadonlySet<string>): boolean {
  return by !== null && passages > 0 && gold.size > 0 && relevant === 0;
}

function unmatched(name: string, matched: MatchedPassages, gold: ReadonlySet<string>): string[] {
  if (!lacksRelevant(matched, gold)) return [];
  const { by, passages } = matched;
  return [
    by === 'id'
      ? `${name}: none of ${passages} passages has the id of a relevant one. Check that the judgements use the ids of this server; --corpus FILE, its corpus, finds the relevant passages by their texts.`
      : `${name}: none of ${passages} passages has the text of a relevant one. Check that --corpus is the server's corpus; replies with excerpts cannot be matched by text.`,
  ];
}

function missingTexts(corpus: string, gold: ReadonlySet<string>, texts: GoldTexts): string[] {
  const found = new Set([...texts.values()].flat());
  const missing = [...gold].filter((id) => !found.has(id));
  if (missing.length === 0) return [];
  return [
    `${missing.length} of ${gold.size} relevant passages are not in ${corpus}, such as ${JSON.stringify(missing[0])}: no search can find them.`,
  ];
}

/** The comparable text of each relevant passage, with its title and without: not every dialect returns titles. */
async function goldTexts(corpus: string, gold: ReadonlySet<string>, signal: AbortSignal): Promise<GoldTexts> {
  const ids = new Map<string, string[]>();
  for await (const { document } of openCorpus([corpus], { checksums: false, signal })) {
    const { id, text, contents } = hitFields(document, 0);
    if (!gold.has(id)) continue;
    for (const comparable of new Set([contents, text].map(comparableText))) {
      if (comparable !== '') ids.set(comparable, [...(ids.get(comparable) ?? []), id]);
    }
  }
  return ids;
}
