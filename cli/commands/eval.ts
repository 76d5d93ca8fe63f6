import { type Evaluation, evaluateRun } from '../../evaluation/evaluate-run.ts';
import { readQrels } from '../../evaluation/read-qrels.ts';
import { judgementsOf, type Question, readQuestions } from '../../evaluation/read-questions.ts';
import type { RankedPassage } from '../../evaluation/run.ts';
import { checkTrecField, formatTrecRun } from '../../evaluation/trec-run.ts';
import { TrawlError } from '../../src/errors.ts';
import type { RetrieveCall } from '../../src/retrieval/calls/retrieve-call.ts';
import type { Retriever } from '../../src/retrieval/retriever.ts';
import { defineCommand, EXIT } from '../command.ts';
import { filterOption } from '../filter-option.ts';
import { hitFields } from '../hit-fields.ts';
import { checkEndpointOptions } from '../model/endpoint-options.ts';
import { FURTHER_INDEX_OPTION, openReranked } from '../open-reranked.ts';
import { writeOutputFile } from '../output-file.ts';
import { QUERY_FORM_OPTION, QUERY_TEMPLATE_OPTION, type QueryForm, queryOf, templateOf } from '../query-form.ts';
import { modesOption, RANKING_OPTIONS, type Ranking, rankingOf } from '../ranking-options.ts';
import { checkRerankOptions, RERANK_OPTIONS } from '../rerank-options.ts';
import { RETRIEVER_OPTIONS, retrieverOptions } from '../retriever-options.ts';
import { VIEW_OPTIONS } from '../view-options.ts';

/** Queries searched at once. */
const BATCH_QUERIES = 256;

export const evalCommand = defineCommand({
  name: 'eval',
  summary: 'measure recall, nDCG, MRR and answer hits of an index',
  description:
    'Searches for every question and compares the passages with the judgements: recall@k, nDCG@k, MRR@k and hit@k, averaged ' +
    'over the judged questions, and answer_hit@k (one of the first k passages contains a golden answer). The definitions ' +
    "are trec_eval's; --run writes a run file for other tools.\n\n" +
    'With --json: {"queries", "judged", "unjudged", "answerable", "metrics"}.',
  positionals: { usage: '<index>', help: { index: 'The index directory.' }, min: 1, max: 1 },
  options: {
    queries: {
      type: 'string',
      value: 'FILE',
      help: 'Questions as JSON lines: {"id", "question", "query"?, "history_queries"?, "gold_ids"?, "golden_answers"?}, or {"_id", "text"} as in BEIR. Required.',
    },
    index: FURTHER_INDEX_OPTION,
    qrels: { type: 'string', value: 'FILE', help: 'Judgements (TREC qrels or BEIR tsv) to use instead of gold_ids.' },
    cutoffs: {
      type: 'string',
      value: 'K,K,…',
      default: '1,5,10',
      help: 'The values of k. The largest is the number of passages retrieved per question.',
    },
    'query-form': QUERY_FORM_OPTION,
    'query-template': QUERY_TEMPLATE_OPTION,
    ...RANKING_OPTIONS,
    ...VIEW_OPTIONS,
    ...RERANK_OPTIONS,
    run: { type: 'string', value: 'FILE', help: 'Also write the results as a TREC run.' },
    tag: { type: 'string', default: 'trawl', help: 'Name of the run in the file of --run.' },
    ...RETRIEVER_OPTIONS,
  },
  examples: [
    'trawl eval indexes/sample --queries corpus/sample/questions.jsonl',
    'trawl eval indexes/wiki18 --queries questions.jsonl --mode bm25 --k1 1.2 --b 0.75',
    'trawl eval indexes/wiki18 --queries questions.jsonl --mode hybrid --hybrid-weights dense=0.4,bm25=0.6',
    'trawl eval indexes/sample --queries corpus/sample/sub-queries.jsonl --query-form question-and-query --json',
  ],
  async run({ options, positionals, given, signal, out, note }) {
    if (options.queries === undefined) {
      throw new TrawlError('USAGE', '--queries is missing: the file of questions, such as --queries questions.jsonl.');
    }
    const cutoffs = parseCutoffs(options.cutoffs);
    filterOption(options.filter);
    const questions = await readQuestions(options.queries);
    const judgements = options.qrels === undefined ? judgementsOf(questions) : await readQrels(options.qrels);
    const forRun = options.run !== undefined;
    if (forRun) {
      checkTrecField('tag', options.tag);
      for (const { id } of questions) checkTrecField('query id', id);
    }
    const modes = modesOption(options, given);
    checkRerankOptions(options, given);
    checkEndpointOptions(options.model, given);
    const retrieving = { ...retrieverOptions(options), ...(modes === undefined ? {} : { modes }), onWarning: note };
    const { retriever, close } = await openReranked(positionals[0]!, options, retrieving, options.index);
    try {
      const run = await searchAll(retriever, questions, {
        form: options['query-form'],
        k: Math.max(...cutoffs),
        ranking: {
          ...rankingOf(options, retriever.info, Math.max(...cutoffs)),
          ...templateOf(options['query-template']),
        },
        forRun,
        signal,
      });
      const answers = new Map(
        questions.flatMap(({ id, goldenAnswers }) =>
          goldenAnswers === undefined ? [] : [[id, goldenAnswers] as const],
        ),
      );
      const evaluation = evaluateRun({ queryIds: questions.map(({ id }) => id), run, judgements, answers, cutoffs });
      if (options.run !== undefined) {
        await writeOutputFile(options.run, formatTrecRun(run, { tag: options.tag }));
      }
      out(options.json ? jsonReport(evaluation) : textReport(evaluation));
      if (evaluation.judged === 0 && evaluation.answerable === 0) {
        note(
          'No question has judgements or answers, so nothing was measured. Pass --qrels, or add gold_ids to the questions.',
        );
        return EXIT.failed;
      }
      if (evaluation.judged > 0 && Object.values(evaluation.means).every((mean) => mean === 0)) {
        note('No search found a judged passage. Check that the judgements use the ids of this index.');
      }
      return EXIT.ok;
    } finally {
      await close();
    }
  },
});

/** Searches all questions. With `forRun`, throws at the first passage id that a TREC run cannot contain. */
async function searchAll(
  retriever: Retriever,
  questions: readonly Question[],
  {
    form,
    k,
    ranking,
    forRun,
    signal,
  }: {
    form: QueryForm;
    k: number;
    ranking: Ranking & Pick<RetrieveCall, 'template'>;
    forRun: boolean;
    signal: AbortSignal;
  },
): Promise<Map<string, RankedPassage[]>> {
  const run = new Map<string, RankedPassage[]>();
  for (let start = 0; start < questions.length; start += BATCH_QUERIES) {
    const batch = questions.slice(start, start + BATCH_QUERIES);
    const { outcomes } = await retriever.retrieve({
      queries: batch.map((question) => queryOf(question, form)),
      k,
      ...ranking,
      signal,
    });
    for (const [i, outcome] of outcomes.entries()) {
      if (!outcome.ok) throw outcome.error;
      const ranked = outcome.hits.map(({ row, score, document }): RankedPassage => {
        const { id, contents } = hitFields(document, row);
        if (forRun) checkTrecField('passage id', id);
        return { id, score, text: contents };
      });
      run.set(batch[i]!.id, retriever.info.members === undefined ? ranked : withoutRepeatedIds(ranked));
    }
  }
  return run;
}

/** Of a passage that several indexes have, the best place. */
function withoutRepeatedIds(ranked: readonly RankedPassage[]): RankedPassage[] {
  const seen = new Set<string>();
  return ranked.filter(({ id }) => !seen.has(id) && seen.add(id));
}

function parseCutoffs(text: string): number[] {
  const cutoffs = text.split(',').map((part) => (/^\s*\d+\s*$/.test(part) ? Number(part) : Number.NaN));
  if (cutoffs.every((k) => k >= 1 && Number.isSafeInteger(k))) return [...new Set(cutoffs)].sort((a, b) => a - b);
  throw new TrawlError('USAGE', `--cutoffs is ${JSON.stringify(text)}; expected whole numbers from 1, such as 1,5,10.`);
}

function jsonReport({ queries, judged, unjudged, answerable, means }: Evaluation): string {
  return JSON.stringify({ queries, judged, unjudged, answerable, metrics: means });
}

function textReport({ queries, judged, unjudged, answerable, means }: Evaluation): string {
  // `mrr` without a cutoff equals that of the largest cutoff.
  const cells = Object.keys(means).flatMap((name) => {
    const [metric, cutoff] = name.split('@');
    return cutoff === undefined ? [] : [{ metric: metric!, cutoff }];
  });
  const metrics = [...new Set(cells.map(({ metric }) => metric))];
  const cutoffs = [...new Set(cells.map(({ cutoff }) => cutoff))];
  const width = Math.max(0, ...metrics.map((metric) => metric.length));
  const line = (first: string, others: readonly string[]) =>
    [first.padEnd(width), ...others.map((text) => text.padStart(6))].join('  ');
  return [
    `queries ${queries}, judged ${judged}${unjudged > 0 ? ` (${unjudged} without judgements skipped)` : ''}, with answers ${answerable}`,
    ...(metrics.length === 0
      ? []
      : [
          line(
            '',
            cutoffs.map((cutoff) => `@${cutoff}`),
          ),
        ]),
    ...metrics.map((metric) =>
      line(
        metric,
        cutoffs.map((cutoff) => means[`${metric}@${cutoff}`]?.toFixed(4) ?? ''),
      ),
    ),
  ].join('\n');
}
