import { percentile, sortedSamples } from '../../bench/statistics.ts';
import { openCorpus } from '../../corpus/open-corpus.ts';
import type { Question } from '../../evaluation/read-questions.ts';
import type { RankedPassage } from '../../evaluation/run.ts';
import { askServer, type ServerAnswers } from '../../evaluation/server/ask-server.ts';
import type { DialectClient, ServerPassage } from '../../evaluation/server/dialect-client.ts';
import { DIALECT_CLIENTS } from '../../evaluation/server/dialect-clients.ts';
import { comparableText } from '../../src/comparable-text.ts';
import { applyTemplate, composeText } from '../../src/embedding/text-encoder.ts';
import { COMPOSED_SEPARATOR } from '../../src/recording/composed-query.ts';
import { hitFields } from '../hit-fields.ts';
import { readKey } from '../read-key.ts';
import { queriesOf } from './eval-queries.ts';
import { foundPassages } from './search-questions.ts';
import type { Asked, MatchedBy, SearchedSystem, ServerReport } from './searched-system.ts';
import type { SystemSpec } from './system-text.ts';

/** Tries of a request: fewer than other clients make, because a measurement should say that a server is overloaded. */
const ATTEMPTS = 5;

/**
 * Asks a server for all questions. Its passages are matched with the judgements by their ids, or with `--corpus` by their texts.
 *
 * @throws TrawlError USAGE; CONFIG_INVALID if the server cannot be asked at all.
 */
export async function searchServer({ name, place, options }: SystemSpec, asked: Asked): Promise<SearchedSystem> {
  const { questions, k, gold, signal, note } = asked;
  const client = DIALECT_CLIENTS.find((each) => each.name === options.dialect)!;
  const url = place.replace(/\/+$/, '');
  const key = options['key-file'];
  const { concurrency, 'queries-per-request': queriesPerRequest } = options;
  if (!client.batch && queriesPerRequest > 1)
    note(`A request of the dialect ${client.name} has one query: --queries-per-request is not used.`);
  const wanted = questions.map((question) => ({ id: question.id, queries: queryTexts(question, options) }));
  const answers = await askServer(
    client,
    url,
    wanted.flatMap(({ queries }, i) => queries.map((text, place) => ({ id: `${i} ${place}`, text }))),
    {
      k,
      concurrency,
      queriesPerRequest,
      attempts: ATTEMPTS,
      timeoutMs: options['request-timeout-ms'],
      apiKey: key === undefined ? undefined : readKey(key),
      signal,
    },
  );
  const texts = options.corpus === undefined ? undefined : await goldTexts(options.corpus, gold, signal);
  const matched = matchedRun(answers.lists, texts);
  return {
    name,
    what: `${client.name} at ${url}`,
    ...foundPassages(
      wanted,
      wanted.flatMap(({ queries }, i) => queries.map((_, place) => matched.run.get(`${i} ${place}`) ?? [])),
      k,
    ),
    hasIds: matched.by !== null,
    hasTexts: true,
    failed: failedQuestions(wanted, answers.failed),
    server: serverReport(client, answers, { matchedBy: matched.by, concurrency, queriesPerRequest }),
    notes: [
      ...notesOn(name, client, answers, matched, k),
      ...(texts === undefined ? [] : missingTexts(options.corpus!, gold, texts)),
    ],
  };
}

/** The texts of the queries: question and query of an agent with ` [SEP] ` in between, as Agentic-R's clients compose them. */
function queryTexts(question: Question, options: SystemSpec['options']): string[] {
  return queriesOf(question, options['query-form']).map((query) =>
    composeText(applyTemplate(query, options['query-template']), '', COMPOSED_SEPARATOR.trim()),
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
  client: DialectClient,
  { latenciesMs, requests, repeated, seconds, lists, failed }: ServerAnswers,
  { matchedBy, concurrency, queriesPerRequest }: Pick<ServerReport, 'matchedBy' | 'concurrency' | 'queriesPerRequest'>,
): ServerReport {
  const samples = latenciesMs.length === 0 ? undefined : sortedSamples(latenciesMs);
  const reasons: Record<string, number> = {};
  for (const reason of failed.values()) reasons[reason] = (reasons[reason] ?? 0) + 1;
  return {
    dialect: client.name,
    matchedBy,
    concurrency,
    queriesPerRequest: client.batch ? queriesPerRequest : 1,
    requests,
    repeated,
    latencyMs:
      samples === undefined
        ? null
        : { p50: percentile(samples, 50), p95: percentile(samples, 95), p99: percentile(samples, 99) },
    questionsPerSecond: lists.size / seconds,
    failures: reasons,
  };
}

interface Matched {
  readonly run: ReadonlyMap<string, readonly RankedPassage[]>;
  readonly by: MatchedBy | null;
  /** Passages in the replies, and those without an id. */
  readonly passages: number;
  readonly withoutId: number;
}

/** @param texts comparable text → id of the relevant passages; undefined: the server's ids count. */
function matchedRun(
  lists: ReadonlyMap<string, readonly ServerPassage[]>,
  texts: ReadonlyMap<string, string> | undefined,
): Matched {
  let passages = 0;
  let withoutId = 0;
  const run = new Map<string, RankedPassage[]>();
  for (const [queryId, list] of lists) {
    const seen = new Set<string>();
    const ranked = list.map(({ id, title, contents, score }, i): RankedPassage => {
      passages += 1;
      if (id === undefined) withoutId += 1;
      // Judgements cannot have such an id: a passage that is no relevant one.
      const unknown = `no-id:${i + 1}`;
      const own = texts === undefined ? id : texts.get(comparableText(contents));
      return {
        id: own ?? (texts === undefined ? unknown : (id ?? unknown)),
        score: score ?? -i,
        text: contents,
        ...(title === undefined ? {} : { title }),
      };
    });
    run.set(
      queryId,
      ranked.filter(({ id }) => !seen.has(id) && seen.add(id)),
    );
  }
  const by = texts !== undefined ? 'text' : passages > 0 && withoutId === passages ? null : 'id';
  return { run, by, passages, withoutId };
}

function* notesOn(
  name: string,
  client: DialectClient,
  { lists, failed }: ServerAnswers,
  { by, passages, withoutId }: Matched,
  k: number,
): Generator<string, void> {
  if (failed.size > 0) {
    const [reason] = failed.values();
    yield `${name}: ${failed.size} of ${failed.size + lists.size} searches failed and are left out of the metrics, such as: ${reason}.`;
  }
  if (by === null)
    yield `${name}: the replies (${client.name}) have no ids, so judgements of passages are not used. Pass --corpus FILE, the server's corpus, to find the relevant passages by their texts.`;
  else if (by === 'id' && withoutId > 0)
    yield `${name}: ${withoutId} of ${passages} passages have no id and count as not relevant. Pass --corpus FILE to find the relevant passages by their texts.`;
  const short = [...lists.values()].filter((list) => list.length < k).length;
  if (short > 0) yield `${name}: ${short} of ${lists.size} lists have fewer than ${k} passages.`;
}

function missingTexts(corpus: string, gold: ReadonlySet<string>, texts: ReadonlyMap<string, string>): string[] {
  const found = new Set(texts.values());
  const missing = [...gold].filter((id) => !found.has(id));
  if (missing.length === 0) return [];
  return [
    `${missing.length} of ${gold.size} relevant passages are not in ${corpus}, or have the text of another one, such as ${JSON.stringify(missing[0])}: no search can find them.`,
  ];
}

/** The comparable text of each relevant passage, with its title and without: not every dialect returns titles. */
async function goldTexts(
  corpus: string,
  gold: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const ids = new Map<string, string>();
  for await (const { document } of openCorpus([corpus], { checksums: false, signal })) {
    const { id, text, contents } = hitFields(document, 0);
    if (!gold.has(id)) continue;
    for (const each of [contents, text]) {
      const comparable = comparableText(each);
      if (comparable !== '' && !ids.has(comparable)) ids.set(comparable, id);
    }
  }
  return ids;
}
