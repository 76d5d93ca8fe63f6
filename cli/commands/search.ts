import { usageError } from '../../src/base/errors.ts';
import { formatDuration } from '../../src/base/format.ts';
import type { EncoderInput } from '../../src/encoder/text-encoder.ts';
import type { ExplainedTerm } from '../../src/search/calls/lookup-calls.ts';
import type { Hit, QueryOutcome } from '../../src/search/calls/query-outcome.ts';
import type { RetrieveCall } from '../../src/search/calls/retrieve-call.ts';
import { explainedFusion, explainedPlaces } from '../../src/search/hybrid/explain-fusion.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import { FURTHER_INDEX_OPTION, openReranked } from '../open/open-reranked.ts';
import { SERVER_OPTIONS, searchSettings, withFolder } from '../open/search-source.ts';
import { QUERY_FORM_OPTION, QUERY_TEMPLATE_OPTION } from '../options/query-form.ts';
import { RANKING_OPTIONS, rankingOf } from '../options/ranking-options.ts';
import { RERANK_OPTIONS } from '../options/rerank-options.ts';
import { RETRIEVER_OPTIONS } from '../options/retriever-options.ts';
import { VIEW_OPTIONS } from '../options/view-options.ts';
import { type CommandContext, defineCommand, EXIT } from '../program/command.ts';
import { BULK_OPTIONS, isBulkSearch } from '../search/bulk-options.ts';
import { hitJson, hitLines, type ShownHit } from '../search/found-hits.ts';
import { searchQueries } from '../search/search-queries.ts';

const options = {
  k: { type: 'integer', min: 1, default: 5, help: 'Passages per query.' },
  index: {
    ...FURTHER_INDEX_OPTION,
    help: `${FURTHER_INDEX_OPTION.help} With --url: the name of the served index.`,
  },
  question: {
    type: 'string',
    help: 'The question that the query was derived from: embeds "QUESTION [SEP] QUERY", like Agentic-R.',
  },
  history: {
    type: 'list',
    help: 'An earlier query for the question; repeat the option for several, oldest first. Embedded if the template has the history.',
  },
  'query-template': QUERY_TEMPLATE_OPTION,
  ...BULK_OPTIONS,
  ...SERVER_OPTIONS,
  'query-form': QUERY_FORM_OPTION,
  explain: {
    type: 'flag',
    help: 'With --mode bm25 or hybrid and one query: show the terms of each BM25 score, how often they are in the query (boost), how many passages have them, and their parts of the score; with hybrid also what each list adds to the score.',
  },
  ...RANKING_OPTIONS,
  ...VIEW_OPTIONS,
  ...RERANK_OPTIONS,
  ...RETRIEVER_OPTIONS,
} as const;

export const searchCommand = defineCommand({
  name: 'search',
  takesStoreAddress: true,
  summary: 'search an index from the terminal, with one query or a file of queries',
  description:
    'Embeds the query with the encoder of the index and prints the best passages with their scores (larger is better). With ' +
    '--mode bm25 it ranks by words instead, with --mode hybrid by both. With --rerank a cross-encoder orders the passages that were found.\n\n' +
    'With --json: {"tokens", "truncated", "timings", "hits": [{"row", "score", "document"}]}, with documents as in the ' +
    'corpus; with --mode hybrid each hit also has "dense" and "bm25", {"rank", "score"} or null, with --explain "terms": [{"term", "field", "boost", "documentFrequency", "score"}], with --rerank "firstStage": {"rank", "score"}, with --index "index" and "indexScore"; with --queries {"out", "queries", "k", "resumed", "failed"}.\n\n' +
    'With --queries, a killed or stopped command resumes: the same command continues where it was. docs/bulk-search.md has the formats.',
  positionals: {
    usage: '[index] [query]',
    help: {
      index:
        'The index directory, or its address in Milvus (milvus://…) or OpenSearch (opensearch://…). Not with --url.',
      query: 'The query, in quotes.',
    },
    min: 0,
    max: 2,
  },
  options,
  resumable: true,
  examples: [
    'trawl search indexes/sample "Which river flows through Vienna?"',
    'trawl search indexes/wiki18 "Which river flows through Vienna?" --mode bm25 --explain',
    'trawl search indexes/wiki18 "flood in Vienna" --index indexes/news',
    'trawl search indexes/news "flood in Vienna" --filter "source = \'orf\' and date >= 2020-01-01"',
    'trawl search indexes/sample "its length" --question "How long is the river that flows through Vienna?"',
    'trawl search indexes/sample --queries corpus/sample/questions.jsonl --k 20 --out hits.jsonl',
    'trawl search indexes/wiki18 --queries rounds.parquet --k 100 --out hits-3.parquet --shard 3/8',
    'trawl search --url http://127.0.0.1:8000 --queries rounds.parquet --k 100 --out hits.parquet',
    'trawl search indexes/wiki18 --query-vectors queries.npy --k 100 --out rows.npy --scores-out scores.npy',
  ],
  async run(context) {
    const { url } = context.options;
    const [folder, query] = withFolder(context.positionals, context.options, context.given, 1);
    if (url === undefined && folder === undefined) {
      throw usageError('Expected an index directory, or --url URL with --queries FILE.');
    }
    const isBulk = isBulkSearch(context.options, query, context.given);
    if (context.options.explain && context.options.mode !== 'bm25' && context.options.mode !== 'hybrid') {
      throw usageError('--explain has no effect without --mode bm25 or hybrid.');
    }
    if (context.options.explain && isBulk) {
      throw usageError('--explain explains one query; it cannot be combined with --queries.');
    }
    const retrieving = searchSettings(context.options, context.given, context);
    if (isBulk) return searchQueries(folder, retrieving, context);
    const { retriever, close } = await openReranked(folder!, context.options, retrieving, context.options.index);
    try {
      await searchOne(retriever, query!, context);
      return EXIT.ok;
    } finally {
      await close();
    }
  },
});

type Context = CommandContext<typeof options>;

async function searchOne(retriever: Retriever, query: string, { options, signal, out, note }: Context): Promise<void> {
  const { question, history } = options;
  const input: EncoderInput =
    question === undefined && history.length === 0 ? query : { question: question ?? '', query, history };
  const ranking = { ...rankingOf(options, retriever.info, options.k), template: options['query-template'] };
  const { outcomes, timings } = await retriever.retrieve({ queries: [input], k: options.k, ...ranking, signal });
  const answer = okOutcome(outcomes[0]!);
  const { hits, tokens, truncated, certificate } = answer;
  const { hybrid } = ranking;
  const terms = options.explain ? await explainHits(retriever, input, hits, { ...ranking, signal }) : undefined;
  const shown = hits.map((hit, i): ShownHit => {
    if (terms === undefined) return { hit, places: hit.places };
    return { hit, terms: terms[i], places: explainedPlaces(hit, hybrid, answer) };
  });
  const fusion = terms === undefined || hybrid === undefined ? undefined : explainedFusion(hybrid, answer);
  if (options.json) {
    const head = JSON.stringify({
      tokens,
      truncated,
      ...(certificate.exact ? {} : { exact: false }),
      timings,
      fusion,
    }).slice(0, -1);
    out(`${head},"hits":[${shown.map(hitJson).join(',')}]}`);
    return;
  }
  const width = process.stdout.isTTY === true ? Math.min(process.stdout.columns || 100, 100) : undefined;
  for (const [i, hit] of shown.entries()) out(hitLines(hit, i + 1, width).join('\n'));
  if (fusion !== undefined) note(`score = ${fusion.formula}`);
  const { embed, search, fetch, rerank } = timings;
  const embedding = ranking.mode === 'bm25' ? '' : `embed ${formatDuration(embed)}, `;
  const reranking = ranking.rerank === undefined ? '' : `, rerank ${formatDuration(rerank)}`;
  note(`${embedding}search ${formatDuration(search)}, fetch ${formatDuration(fetch)}${reranking}`);
  if (truncated) note(`The query was truncated to ${tokens} tokens.`);
  if (!certificate.exact) note('The hits are not proved to be the best: the index over the vectors is approximate.');
}

async function explainHits(
  retriever: Retriever,
  query: EncoderInput,
  hits: readonly Hit[],
  { bm25, template, signal }: Pick<RetrieveCall, 'bm25' | 'template' | 'signal'>,
): Promise<readonly (readonly ExplainedTerm[])[]> {
  const rows = hits.map(({ row }) => row);
  const { explained } = await retriever.explain({
    queries: [{ query, rows }],
    template,
    bm25,
    signal,
  });
  return explained[0]!;
}

function okOutcome(outcome: QueryOutcome): Extract<QueryOutcome, { ok: true }> {
  if (outcome.ok) return outcome;
  throw outcome.error;
}
