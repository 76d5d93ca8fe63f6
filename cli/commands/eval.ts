import { checkFilesApart } from '../../evaluation/bulk-search/check-files-apart.ts';
import type { Metrics } from '../../evaluation/evaluate-run.ts';
import { isFolder } from '../../evaluation/question-entries.ts';
import { BEIR_SPLITS, goldIds, type QuestionSet, readJudgedQuestions } from '../../evaluation/question-set.ts';
import { comparisonHtml } from '../../evaluation/report/comparison-html.ts';
import { checkTrecField, formatTrecRun } from '../../evaluation/run.ts';
import { type ComparisonInput, checkBy, compareSystems } from '../../evaluation/systems/comparison.ts';
import {
  answeredByAll,
  type EvalContext,
  evaluationJson,
  hasMeasured,
  type MeasuredSystem,
  measureSystem,
  perQuestionLines,
} from '../../evaluation/systems/searched-system.ts';
import { usageError } from '../../src/base/errors.ts';
import { PartialFile } from '../../src/base/system/partial-file.ts';
import { isServerUrl } from '../../src/encoder/model-server/server-url.ts';
import { readTrajectories } from '../../training/trajectories/read-trajectories.ts';
import { openRecords } from '../../training/trajectories/recorded-trajectories.ts';
import { reportText } from '../../training/trajectories/report/report-text.ts';
import type { TrajectoryReport } from '../../training/trajectories/report/trajectory-report.ts';
import type { Trajectory } from '../../training/trajectories/trajectory.ts';
import {
  coverageOf,
  type TrajectoryQuestions,
  trajectoryQuestions,
} from '../../training/trajectories/trajectory-questions.ts';
import { comparisonText, countLine, evalText, serverLines } from '../eval/eval-text.ts';
import {
  parseSystem,
  SYSTEM_OPTIONS,
  type SystemOptions,
  type SystemSpec,
  searchSystems,
  UNUSED_OPTIONS,
} from '../eval/systems.ts';
import { FURTHER_INDEX_OPTION } from '../open/open-reranked.ts';
import { namedFiles, refuseOptions, requiredOption } from '../options/checks.ts';
import { filterOption } from '../options/filter-option.ts';
import { parseCutoffs } from '../options/numbers.ts';
import * as option from '../options/option.ts';
import { writeOutputFile } from '../output/output-file.ts';
import { defineCommand, EXIT } from '../program/command.ts';

export const evalCommand = defineCommand({
  name: 'eval',
  takesStoreAddress: true,
  summary: 'measure recall, nDCG, MAP, MRR and answer hits of an index',
  description:
    'Searches for every question and compares the passages with the judgements. recall@k, precision@k, nDCG@k, MAP@k, MRR@k, ' +
    'hit@k (success) and r_precision are averaged over the judged questions, as trec_eval defines them; all_gold@k is the share of questions ' +
    'whose relevant passages are all among the first k. title_recall@k, title_all_gold@k and title_hit@k are the same for pages, ' +
    'where a question has gold_titles. answer_hit@k: one of the first k passages contains the words of a golden answer; ' +
    'answer_substring@k: its characters; answer_normalised@k: the same without articles and punctuation, also in the title. ' +
    'In brackets stands the 95 % interval of each mean: how far it depends on which questions ' +
    'were asked (bootstrap). Where questions have a type, the metrics follow for each type. --run writes a run file ' +
    'for other tools.\n\n' +
    '--url measures a running server in its dialect, with the latency of its answers; questions with a failed search are left ' +
    'out of the metrics and counted, and the exit code is then 3, as it is if a system has none of the relevant passages.\n\n' +
    'Questions with several queries (a column "queries", --trajectories, --records): each query is searched by itself, the lists are fused by ' +
    'reciprocal rank, and union_recall@k and its kin measure what all queries together show with k passages each.\n\n' +
    '--compare measures further systems with the same questions: each metric, the difference to the first system with its 95 % interval, ' +
    'the p-value of the paired randomisation test, and the questions that changed.\n\n' +
    'With --json: {"source", "queries", "questions"?, "judged", "unjudged", "titleJudged", "answerable", "metrics", "intervals", "seed", "byType"?, "failed"?, "server"?, "coverage"?}, ' +
    'or with --compare {"source", "seed", "asked", "answered", "systems", "comparisons"} (docs/evaluation.md).',
  positionals: {
    usage: '[index]',
    help: {
      index:
        'The index directory, or its address in Milvus (milvus://…) or OpenSearch (opensearch://…); or a TREC run, whose results are measured. Omitted with --url.',
    },
  },
  options: {
    queries: option.text(
      'FILE|DIR',
      'Questions as JSON lines: {"id", "question", "query"?, "queries"?, "history_queries"?, "gold_ids"?, "gold_titles"?, "golden_answers"?, "type"?}; ' +
        'or the files of FlashRAG, HotpotQA, 2WikiMultihopQA, MuSiQue, KILT, NQ-open, TriviaQA, PopQA, Bamboogle, DPR, TREC topics, and ' +
        'folders of BEIR (docs/evaluation.md). Required.',
    ),
    url: option.text(
      'URL',
      'In place of an index: the URL of a running server, of any project whose dialect Trawl knows (--dialect). Measures the latency, too.',
    ),
    index: FURTHER_INDEX_OPTION,
    trajectories: option.list(
      'FILE',
      "Search for what agents searched for: trajectories as Agentic-R's step 1 writes them (intermediate_data.json). Each trajectory counts as one question with several queries; adds what would have been shown by turn. Repeat the option for several files.",
    ),
    records: option.list(
      'FILE',
      'The same from records of `trawl serve --record`, with their rotated files. Repeat the option for several files.',
    ),
    qrels: option.text('FILE', 'Judgements (TREC qrels or BEIR tsv) to use instead of gold_ids.'),
    split: option.choice(
      BEIR_SPLITS,
      'Which judgements of a BEIR folder: qrels/test.tsv, dev.tsv or train.tsv. Default: the first of them that the folder has. MS MARCO is reported on dev.',
    ),
    cutoffs: option.text(
      { value: 'K,K,…', default: '1,5,10' },
      'The values of k. The largest is the number of passages retrieved per question.',
    ),
    'ignore-identical-ids': option.choice(
      { choices: ['yes', 'no'], value: 'yes|no' },
      "Drop the passage that has the question's own id from its results, as BEIR's evaluation does: queries of ArguAna and Quora are passages of the corpus. Default: yes for a folder of BEIR, else no.",
    ),
    compare: option.list(
      '[NAME=]SYSTEM',
      "A system to compare with the first, over the same questions: an index directory, a TREC run, the URL of a server, or the first index with other options. PLACE?option=value&option=value sets options of a search for this system alone, such as '?mode=bm25' or 'int8=indexes/wiki?precision=int8'. Repeat the option for several.",
    ),
    by: option.text(
      'METRIC',
      'With --compare: the metric by which the questions that changed are chosen, such as ndcg@10. Default: recall, else title_recall, else answer_hit, at the largest cutoff.',
    ),
    examples: option.integer(
      { min: 0, max: 10_000, default: 5 },
      'With --compare: number of changed questions shown for each system, with the passages of both side by side.',
    ),
    html: option.text(
      'FILE',
      'With --compare: also write the report as an HTML page, which loads nothing. An existing file is replaced.',
    ),
    ...SYSTEM_OPTIONS,
    seed: option.integer(
      { min: 0, max: 2 ** 31 - 1, default: 1 },
      'Seed of the random draws of intervals and p-values.',
    ),
    'per-question': option.text(
      'FILE',
      'Also write the metrics of each question as JSON lines: {"id", "question"? (of a trajectory), "system"? (with --compare), "metrics"}. An existing file is replaced.',
    ),
    run: option.text('FILE', 'Also write the results as a TREC run.'),
    tag: option.text({ default: 'trawl' }, 'Name of the run in the file of --run.'),
  },
  examples: [
    'trawl eval indexes/sample --queries corpus/sample/questions.jsonl',
    'trawl eval indexes/wiki18 --queries questions.jsonl --mode bm25 --k1 1.2 --b 0.75',
    'trawl eval indexes/wiki18 --queries questions.jsonl --mode hybrid --hybrid-weights dense=0.4,bm25=0.6',
    'trawl eval indexes/sample --queries corpus/sample/sub-queries.jsonl --query-form question-and-query --json',
    "trawl eval indexes/wiki18 --queries questions.jsonl --compare '?mode=bm25' --compare '?mode=hybrid' --html report.html",
    'trawl eval --url http://127.0.0.1:8000 --dialect search-r1 --queries questions.jsonl --concurrency 16',
    'trawl eval old=indexes/wiki18 --queries questions.jsonl --compare new=indexes/wiki18-new --compare pyserini=run.txt',
  ],
  async run({ options, positionals, given, signal, out, note }) {
    const queries = requiredOption(
      'queries',
      options.queries,
      'the file of questions, such as --queries questions.jsonl',
    );
    const cutoffs = parseCutoffs(options.cutoffs);
    filterOption(options.filter);
    const specs = systemsOf(positionals[0], options, given);
    const comparing = specs.length > 1;
    if (comparing) refuseOptions(given, ['run', 'tag'], 'with --compare: write the run of each system by itself');
    else refuseOptions(given, ['html', 'by', 'examples'], 'without --compare SYSTEM');
    checkFilesApart(
      namedFiles(options, ['run', 'html', 'per-question']),
      namedFiles(options, ['queries', 'qrels', 'trajectories', 'records']),
      [],
    );
    const all = await readJudgedQuestions(queries, options);
    const agents = await agentQuestions(all, options, { signal, note });
    const set = agents ?? all;
    const { questions, judgements } = set;
    checkBy({ questions, judgements, by: options.by, cutoffs });
    const forRun = options.run !== undefined;
    if (forRun) {
      checkTrecField('tag', options.tag);
      for (const { id } of questions) checkTrecField('query id', id);
    }
    const page = options.html === undefined ? undefined : await PartialFile.create(options.html, true);
    const each = options['per-question'];
    let lines: PartialFile | undefined;
    try {
      if (each !== undefined) lines = await PartialFile.create(each, true);
      const k = Math.max(...cutoffs);
      const questionOf = (id: string): string => agents?.questionIds.get(id) ?? id;
      const ignoring = options['ignore-identical-ids'] ?? ((await isFolder(queries)) ? 'yes' : 'no');
      const ownId = ignoring === 'yes' ? questionOf : undefined;
      const searched = await searchSystems(specs, {
        asked: { questions, judgements, k, ownId, gold: goldIds(set), signal, note },
        further: options.index,
        forRun,
      });
      const answered = answeredByAll(questions, searched);
      const measured = searched.map((system) => measureSystem(system, { questions: answered, judgements, cutoffs }));
      const [{ system }] = measured as [MeasuredSystem];
      if (options.run !== undefined)
        await writeOutputFile(options.run, formatTrecRun(system.run, { tag: options.tag }));
      const types = new Map(questions.flatMap(({ id, type }) => (type === undefined ? [] : [[id, type] as const])));
      const context = { types, questionOf, source: set.source, seed: options.seed };
      if (lines !== undefined) {
        for (const line of perQuestionLines(measured, context)) await lines.write(line);
        await lines.publish();
      }
      const coverage: Coverage[] = [];
      for (const system of searched) {
        if (agents === undefined || system.lists === undefined) continue;
        coverage.push({ name: system.name, ...(await coverageOf(system, agents, k)) });
      }
      if (comparing) {
        const input = { questions, judgements, by: options.by, examples: options.examples, cutoffs, context };
        out(await reportComparison(measured, input, coverage, page, options.json));
        if (options.html !== undefined) note(`${options.html}: the report as a page`);
      } else out(reportEvaluation(measured[0]!, context, coverage[0], options.json));
      for (const text of [...set.notes, ...measured.flatMap(({ notes }) => notes)]) note(text);
      if (!measured.some((each) => hasMeasured(each.evaluation))) {
        note(
          answered.length === 0
            ? 'Every question has a failed search, so nothing was measured.'
            : 'No question has judgements or answers, so nothing was measured. Pass --qrels, or add gold_ids, gold_titles or golden_answers to the questions.',
        );
        return EXIT.failed;
      }
      for (const { system, evaluation } of measured) {
        const { judged, titleJudged, means } = evaluation;
        const name = comparing ? `${system.name}: ` : '';
        if (judged > 0 && !foundAny(means, ['mrr', `recall@${k}`, `union_recall@${k}`]))
          note(`${name}No search found a judged passage.`);
        if (titleJudged > 0 && !foundAny(means, [`title_recall@${k}`, `union_title_recall@${k}`]))
          note(
            `${name}No search found a passage with a gold title. Check that the passages have titles, and the same ones.`,
          );
      }
      return searched.some(({ failed, lacksGold }) => failed.size > 0 || lacksGold) ? EXIT.problems : EXIT.ok;
    } finally {
      await page?.discard();
      await lines?.discard();
    }
  },
});

/** What agents would have been shown by a system. */
type Coverage = { readonly name: string } & TrajectoryReport;

/** The comparison as text or JSON. Writes it as a page, too, if one was asked for. `measured`: first the system of the command line. */
async function reportComparison(
  measured: readonly MeasuredSystem[],
  input: ComparisonInput,
  coverage: readonly Coverage[],
  page: PartialFile | undefined,
  json: boolean,
): Promise<string> {
  const report = compareSystems(measured, input);
  const counts = countLine(measured[0]!.evaluation, input.context);
  await page?.write(comparisonHtml(report, counts));
  await page?.publish();
  if (json) return JSON.stringify(coverage.length === 0 ? report : { ...report, coverage });
  const width = process.stdout.isTTY === true ? Math.max(60, process.stdout.columns || 100) : 120;
  const shown = coverage.flatMap(({ name, ...each }) => ['', name, reportText(each)]);
  return [comparisonText(report, counts, width), ...shown].join('\n');
}

/** The metrics of a system alone, as text or JSON. */
function reportEvaluation(
  { system, evaluation }: MeasuredSystem,
  context: EvalContext,
  coverage: Coverage | undefined,
  json: boolean,
): string {
  if (!json) {
    const shown = coverage === undefined ? [] : ['', reportText(coverage)];
    return [...serverLines(system), evalText(evaluation, context), ...shown].join('\n');
  }
  const server = system.server === undefined ? {} : { failed: system.failed.size, server: system.server };
  return JSON.stringify({ ...evaluationJson(evaluation, context), ...server, coverage });
}

function foundAny(means: Metrics, names: readonly string[]): boolean {
  return names.some((name) => (means[name] ?? 0) > 0);
}

/** The systems to measure, the one of the command line first. */
function systemsOf(
  index: string | undefined,
  options: SystemOptions & { readonly url: string | undefined; readonly compare: readonly string[] },
  given: ReadonlySet<string>,
): SystemSpec[] {
  const { url, compare } = options;
  if ((index === undefined) === (url === undefined))
    throw usageError(
      `Expected either an index or --url URL; ${url === undefined ? 'neither is given' : 'compare both with --compare URL'}.`,
    );
  if (url !== undefined && !isServerUrl(url))
    throw usageError(`--url is ${JSON.stringify(url)}; expected the URL of a server, such as http://127.0.0.1:8000.`);
  const first = parseSystem((index ?? url)!, { place: undefined, options, given });
  const specs = [first, ...compare.map((text) => parseSystem(text, { place: first.place, options, given }))];
  for (const [i, { name }] of specs.entries()) {
    if (specs.findIndex((other) => other.name === name) < i)
      throw usageError(
        `Two systems have the name ${name}. Choose another name for one: --compare NAME=${compare[i - 1]}.`,
      );
  }
  const useless = [...given].filter(
    (option) => option in SYSTEM_OPTIONS && specs.every(({ kind }) => UNUSED_OPTIONS[kind].includes(option)),
  );
  const kinds = new Set(specs.map(({ kind }) => ({ index: 'an index', run: 'a run file', server: 'a server' })[kind]));
  refuseOptions(given, useless, `with ${[...kinds].join(' and ')}`);
  return specs;
}

/** The trajectories as questions; undefined without `--trajectories` and `--records`. */
async function agentQuestions(
  all: QuestionSet,
  { trajectories, records }: { readonly trajectories: readonly string[]; readonly records: readonly string[] },
  { signal, note }: { readonly signal: AbortSignal; note(text: string): void },
): Promise<TrajectoryQuestions | undefined> {
  if (trajectories.length === 0 && records.length === 0) return undefined;
  return trajectoryQuestions(read(), all);

  async function* read(): AsyncGenerator<Trajectory, void> {
    for (const file of trajectories) yield* readTrajectories(file, { signal });
    if (records.length > 0)
      yield* (await openRecords(records, all.questions, { signal, note })).read(0, () => undefined);
  }
}
