import { usageError } from '../../src/base/errors.ts';
import { formatDuration } from '../../src/base/format.ts';
import type { EncoderInput } from '../../src/encoder/text-encoder.ts';
import { explainedFusion, explainedPlaces } from '../../src/search/hybrid/hybrid-search.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import { openReranked } from '../open/open-reranked.ts';
import { searchSettings, withFolder } from '../open/search-source.ts';
import { rankingOf } from '../options/ranking-options.ts';
import { type CommandContext, defineCommand, EXIT } from '../program/command.ts';
import { hitJson, hitLines, type ShownHit } from '../search/found-hits.ts';
import { isBulkSearch, SEARCH_OPTIONS } from '../search/search-options.ts';
import { searchQueries } from '../search/search-queries.ts';

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
  },
  options: SEARCH_OPTIONS,
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

async function searchOne(
  retriever: Retriever,
  query: string,
  { options, signal, out, note }: CommandContext<typeof SEARCH_OPTIONS>,
) {
  const { question, history } = options;
  const input: EncoderInput =
    question === undefined && history.length === 0 ? query : { question: question ?? '', query, history };
  const ranking = { ...rankingOf(options, retriever.info, options.k), template: options['query-template'] };
  const { outcomes, timings } = await retriever.retrieve({ queries: [input], k: options.k, ...ranking, signal });
  const answer = outcomes[0]!;
  if (!answer.ok) throw answer.error;
  const { hits, tokens, truncated, certificate } = answer;
  const { hybrid } = ranking;
  const rows = hits.map(({ row }) => row);
  const { bm25, template } = ranking;
  const terms = options.explain
    ? (await retriever.explain({ queries: [{ query: input, rows }], template, bm25, signal })).explained[0]!
    : undefined;
  const shown = hits.map((hit, i): ShownHit => {
    if (terms === undefined) return { hit, places: hit.places };
    return { hit, terms: terms[i], places: explainedPlaces(hit, hybrid, answer) };
  });
  const fusion = terms === undefined || hybrid === undefined ? undefined : explainedFusion(hybrid, answer);
  if (options.json) {
    const facts = { tokens, truncated, exact: certificate.exact ? undefined : false, timings, fusion };
    out(`${JSON.stringify(facts).slice(0, -1)},"hits":[${shown.map(hitJson).join(',')}]}`);
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
