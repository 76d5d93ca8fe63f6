import { evaluateRun } from '../../evaluation/evaluate-run.ts';
import { readQuestionSet } from '../../evaluation/question-set.ts';
import { readQrels } from '../../evaluation/read-qrels.ts';
import { answersOf, titleJudgementsOf } from '../../evaluation/read-questions.ts';
import { checkTrecField, formatTrecRun } from '../../evaluation/trec-run.ts';
import { TrawlError } from '../../src/errors.ts';
import { defineCommand, EXIT } from '../command.ts';
import { evalJson, evalText } from '../eval/eval-report.ts';
import { searchQuestions } from '../eval/search-questions.ts';
import { filterOption } from '../filter-option.ts';
import { checkEndpointOptions } from '../model/endpoint-options.ts';
import { FURTHER_INDEX_OPTION, openReranked } from '../open-reranked.ts';
import { writeOutputFile } from '../output-file.ts';
import { QUERY_FORM_OPTION, QUERY_TEMPLATE_OPTION, templateOf } from '../query-form.ts';
import { modesOption, RANKING_OPTIONS, rankingOf } from '../ranking-options.ts';
import { checkRerankOptions, RERANK_OPTIONS } from '../rerank-options.ts';
import { RETRIEVER_OPTIONS, retrieverOptions } from '../retriever-options.ts';
import { VIEW_OPTIONS } from '../view-options.ts';

export const evalCommand = defineCommand({
  name: 'eval',
  summary: 'measure recall, nDCG, MAP, MRR and answer hits of an index',
  description:
    'Searches for every question and compares the passages with the judgements. recall@k, nDCG@k, MAP@k, MRR@k, hit@k (success) ' +
    'and r_precision are averaged over the judged questions, as trec_eval defines them; all_gold@k is the share of questions ' +
    'whose relevant passages are all among the first k. title_recall@k, title_all_gold@k and title_hit@k are the same for pages, ' +
    'where a question has gold_titles. answer_hit@k: one of the first k passages contains the words of a golden answer; ' +
    'answer_substring@k: its characters. Where questions have a type, the metrics follow for each type. --run writes a run file ' +
    'for other tools.\n\n' +
    'With --json: {"source", "queries", "judged", "unjudged", "titleJudged", "answerable", "metrics", "byType"?}.',
  positionals: { usage: '<index>', help: { index: 'The index directory.' }, min: 1, max: 1 },
  options: {
    queries: {
      type: 'string',
      value: 'FILE|DIR',
      help:
        'Questions as JSON lines: {"id", "question", "query"?, "history_queries"?, "gold_ids"?, "gold_titles"?, "golden_answers"?, "type"?}; ' +
        'or the files of FlashRAG, HotpotQA, 2WikiMultihopQA, MuSiQue, KILT, NQ-open, TriviaQA, PopQA, Bamboogle, DPR, TREC topics, and ' +
        'folders of BEIR (docs/evaluation.md). Required.',
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
    const { questions, judgements: own, source } = await readQuestionSet(options.queries);
    const judgements = options.qrels === undefined ? own : await readQrels(options.qrels);
    const forRun = options.run !== undefined;
    if (forRun) {
      checkTrecField('tag', options.tag);
      for (const { id } of questions) checkTrecField('query id', id);
    }
    const modes = modesOption(options, given);
    checkRerankOptions(options, given);
    checkEndpointOptions(options.model, given);
    const retrieving = {
      ...retrieverOptions(options),
      signal,
      ...(modes === undefined ? {} : { modes }),
      onWarning: note,
    };
    const { retriever, close } = await openReranked(positionals[0]!, options, retrieving, options.index);
    try {
      const run = await searchQuestions(retriever, questions, {
        form: options['query-form'],
        k: Math.max(...cutoffs),
        ranking: {
          ...rankingOf(options, retriever.info, Math.max(...cutoffs)),
          ...templateOf(options['query-template']),
        },
        forRun,
        signal,
      });
      const evaluation = evaluateRun({
        queryIds: questions.map(({ id }) => id),
        run,
        judgements,
        titleJudgements: titleJudgementsOf(questions),
        answers: answersOf(questions),
        cutoffs,
      });
      const types = new Map(questions.flatMap(({ id, type }) => (type === undefined ? [] : [[id, type] as const])));
      if (options.run !== undefined) {
        await writeOutputFile(options.run, formatTrecRun(run, { tag: options.tag }));
      }
      out(options.json ? evalJson(evaluation, { types, source }) : evalText(evaluation, { types, source }));
      const asked = new Set(questions.map(({ id }) => id));
      const unasked = [...judgements.keys()].filter((id) => !asked.has(id));
      if (unasked.length > 0)
        note(
          `${unasked.length} of ${judgements.size} judged queries are not in ${options.queries}, such as ${JSON.stringify(unasked[0])}; ` +
            'their judgements are not used.',
        );
      if (evaluation.judged === 0 && evaluation.titleJudged === 0 && evaluation.answerable === 0) {
        note(
          'No question has judgements or answers, so nothing was measured. Pass --qrels, or add gold_ids, gold_titles or golden_answers to the questions.',
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

function parseCutoffs(text: string): number[] {
  const cutoffs = text.split(',').map((part) => (/^\s*\d+\s*$/.test(part) ? Number(part) : Number.NaN));
  if (cutoffs.every((k) => k >= 1 && Number.isSafeInteger(k))) return [...new Set(cutoffs)].sort((a, b) => a - b);
  throw new TrawlError('USAGE', `--cutoffs is ${JSON.stringify(text)}; expected whole numbers from 1, such as 1,5,10.`);
}
