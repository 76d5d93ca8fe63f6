import { openCorpus } from '../../corpus/open-corpus.ts';
import { comparableText } from '../../src/base/comparable-text.ts';
import { TrawlError } from '../../src/base/errors.ts';
import type { QueryTemplate } from '../../src/encoder/identity/model-identity.ts';
import { applyTemplate, composeText } from '../../src/encoder/text-encoder.ts';
import { hitFields } from '../../src/index/passages/document-fields.ts';
import type { SearchDialect, ServerPassage } from '../../src/server/dialects/dialect.ts';
import { COMPOSED_SEPARATOR } from '../../src/server/recording/composed-query.ts';
import { relevantIds } from '../judgements.ts';
import { type EvalQueryForm, queriesOf } from '../query-form.ts';
import { answersOf, type Question } from '../read-questions.ts';
import { checkTrecField, type RankedPassage, type Run } from '../run.ts';
import { askServer, type MatchedBy, type ServerAnswers, serverReport } from './ask-server.ts';
import { foundPassages } from './search-questions.ts';
import { type Asked, countingPassages, depthOf, ownNotes, type SearchedSystem } from './searched-system.ts';

/** Tries of a request: fewer than other clients make, because a measurement should say that a server is overloaded. */
const ATTEMPTS = 5;

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
  const { name, dialect, corpus, concurrency, timeoutMs, apiKey } = system;
  const { questions, judgements, k, gold, signal, note } = asked;
  // With --corpus only relevant passages have ids, so a question's own passage cannot be recognised.
  const ownId = corpus === undefined ? asked.ownId : undefined;
  const depth = depthOf({ k, ownId });
  const url = system.url.replace(/\/+$/, '');
  if (!dialect.client.batch && system.queriesPerRequest > 1)
    note(`A request of the dialect ${dialect.name} has one query: --queries-per-request is not used.`);
  const queriesPerRequest = dialect.client.batch ? system.queriesPerRequest : 1;
  const wanted = questions.map((question) => ({ id: question.id, queries: queryTexts(question, system) }));
  const queries = wanted.flatMap(({ id: question, queries }, i) =>
    queries.map((text, place) => ({ question, id: `${i} ${place}`, text })),
  );
  const texts = corpus === undefined ? undefined : await goldTexts(corpus, gold, signal);
  const answers = await askServer(dialect, url, queries, {
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
  }).catch((error: unknown) => {
    throw depth > k ? withDepth(error, k) : error;
  });
  const relevant = new Map(questions.map(({ id }) => [id, relevantIds(judgements.get(id) ?? new Map())]));
  const matched = matchPassages(
    queries.map(({ id }) => answers.lists.get(id) ?? []),
    texts,
    queries.map(({ question }) => relevant.get(question)!),
    gold,
  );
  const counting = countingPassages(
    queries.map(({ question }) => question),
    matched.lists,
    { k, ownId },
  );
  const { run, lists } = foundPassages(wanted, counting.lists, k);
  // A fused list has scores of its own.
  const scoresMissing = matched.withoutScore > 0 && lists.size < wanted.length;
  const written = forRun ? orderedByScore(run, scoresMissing) : { run, replaced: false };
  // A question fails if one of its queries does, for the reason of the first.
  const failed = new Map<string, string>();
  for (const { question, id } of queries) {
    const reason = answers.failed.get(id);
    if (reason !== undefined && !failed.has(question)) failed.set(question, reason);
  }
  const answered = wanted.filter(({ id, queries }) => queries.length > 0 && !failed.has(id)).length;
  // The judgements do not fit the server at all, which the metrics show only as zeros.
  const lacksGold = matched.by !== null && matched.passages > 0 && gold.size > 0 && matched.relevant === 0;
  return {
    name,
    what: `${dialect.name} at ${url}`,
    run: written.run,
    lists,
    hasIds: matched.by !== null,
    hasTexts: true,
    lacksGold,
    failed,
    server: serverReport(
      { dialect: dialect.name, matchedBy: matched.by, concurrency, queriesPerRequest },
      answers,
      answered,
    ),
    notes: [
      ...notesOn(system, questions, answers, matched, k),
      ...ownNotes(name, counting.foundOwn, run.keys(), ownId),
      ...(lacksGold ? [unmatched(name, matched)] : []),
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

function* notesOn(
  { name, dialect }: ServerSystem,
  questions: readonly Question[],
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
  if (dialect.client.hit.includes('excerpt') && answersOf(questions).size > 0)
    yield `${name}: the replies (${dialect.name}) have excerpts, so answers are looked for in these, not in whole passages.`;
}

function unmatched(name: string, { by, passages }: MatchedPassages): string {
  return by === 'id'
    ? `${name}: none of ${passages} passages has the id of a relevant one. Check that the judgements use the ids of this server; --corpus FILE, its corpus, finds the relevant passages by their texts.`
    : `${name}: none of ${passages} passages has the text of a relevant one. Check that --corpus is the server's corpus; replies with excerpts cannot be matched by text.`;
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

/** Comparable text → ids of the relevant passages that have it, in the order of the corpus. */
export type GoldTexts = ReadonlyMap<string, readonly string[]>;

type MatchedPassages = ReturnType<typeof matchPassages>;

/**
 * Gives each passage of a server's lists the id by which it is judged: its own id; with `texts`, the id of a passage with the same text,
 * preferably of one that is relevant to the list's question. If several ids qualify, the second copy in a list gets the second, and so on.
 * A passage without an id gets one made of title and text, so equal passages of several queries are one.
 *
 * @param texts undefined: the server's ids count.
 * @param gold for each list the ids of the passages that are relevant to its question.
 * @param anyGold ids of the relevant passages of all questions. @internal Exported for tests.
 */
export function matchPassages(
  lists: readonly (readonly ServerPassage[])[],
  texts: GoldTexts | undefined,
  gold: readonly ReadonlySet<string>[],
  anyGold: ReadonlySet<string>,
) {
  const numbers = new Map<string, number>();
  /** Passages in the replies, those without an id, without a score, and those that are relevant for any question. */
  const counts = { passages: 0, withoutId: 0, withoutScore: 0, relevant: 0 };
  const matched = lists.map((list, place) => {
    const given = new Set<string>();
    return list.map((passage, i): RankedPassage => {
      const { title, text, score } = passage;
      const ids = judgedIds(passage, texts);
      const relevant = ids.filter((id) => gold[place]!.has(id));
      const own = relevant.find((id) => !given.has(id)) ?? relevant[0] ?? ids[0];
      if (texts !== undefined && own !== undefined) given.add(own);
      counts.passages += 1;
      if (passage.id === undefined) counts.withoutId += 1;
      if (score === undefined) counts.withoutScore += 1;
      if (own !== undefined && anyGold.has(own)) counts.relevant += 1;
      return { id: own ?? unknownId(passage, `${place} ${i}`, numbers), score: score ?? -i, text, title };
    });
  });
  const { passages, withoutId } = counts;
  const by: MatchedBy | null = texts !== undefined ? 'text' : passages > 0 && withoutId === passages ? null : 'id';
  /** `lists`: a list for each given one, in their order and with their repetitions. */
  return { lists: matched, by, ...counts };
}

/** The ids that a passage may have among judgements. With `texts`, its own id is changed so that it equals no judged id. */
function judgedIds({ id, contents }: ServerPassage, texts: GoldTexts | undefined): readonly string[] {
  const own = id === undefined ? [] : [texts === undefined ? id : `server:${id}`];
  return texts?.get(comparableText(contents)) ?? own;
}

/** A short id for a passage without one: the number of its text. Passages without text differ. */
function unknownId({ title = '', contents }: ServerPassage, place: string, numbers: Map<string, number>): string {
  const text = comparableText(`${title}\n${contents}`);
  // No comparable text begins with white space.
  const key = text === '' ? ` ${place}` : text;
  const number = numbers.get(key) ?? numbers.size + 1;
  numbers.set(key, number);
  return `no-id:${number}`;
}

/**
 * A run for a file, whose readers order it by score: the same run if scores fall along each list, else with −rank as the scores.
 * Distances, for example, rise.
 *
 * @param missing whether some passages have no score. @internal Exported for tests.
 */
export function orderedByScore(run: Run, missing: boolean): { readonly run: Run; readonly replaced: boolean } {
  const falls = [...run.values()].every((list) => list.every(({ score }, i) => i === 0 || list[i - 1]!.score >= score));
  if (falls && !missing) return { run, replaced: false };
  const ranks = (list: readonly RankedPassage[]) => list.map((passage, i) => ({ ...passage, score: -(i + 1) }));
  return { run: new Map(Array.from(run, ([id, list]) => [id, ranks(list)])), replaced: true };
}
