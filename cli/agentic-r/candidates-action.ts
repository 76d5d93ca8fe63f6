import { readQuestionSet } from '../../evaluation/question-set.ts';
import { TrawlError, usageError } from '../../src/base/errors.ts';
import { formatCount, formatNumberOf } from '../../src/base/format.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { reportPath } from '../../src/base/system/output-report.ts';
import { ResumableOutput } from '../../src/base/system/resumable-output.ts';
import { DEFAULT_CANDIDATES } from '../../training/agentic-r/candidates-file.ts';
import {
  CANDIDATE_QUERY_FORMS,
  type CandidateCounts,
  DROP_REASONS,
  type DropReason,
  makeCandidates,
  QWEN_ASSISTANT_MARKER,
} from '../../training/agentic-r/make-candidates.ts';
import { openTrajectoryFile } from '../../training/trajectories/read-trajectories.ts';
import { openRecords } from '../../training/trajectories/recorded-trajectories.ts';
import type { OpenTrajectories } from '../../training/trajectories/trajectory.ts';
import {
  type OpenSource,
  openSource,
  SERVED_INDEX_OPTION,
  SERVER_OPTIONS,
  searchSettings,
  withFolder,
} from '../open/search-source.ts';
import { refuseOptions } from '../options/checks.ts';
import * as option from '../options/option.ts';
import { RANKING_OPTIONS, rankingOf } from '../options/ranking-options.ts';
import { RERANK_OPTIONS } from '../options/rerank-options.ts';
import { RESTART_OPTION } from '../options/restart-option.ts';
import { RETRIEVER_OPTIONS } from '../options/retriever-options.ts';
import { VIEW_OPTIONS } from '../options/view-options.ts';
import { withProgress } from '../output/progress/step-progress.ts';
import { type CommandContext, EXIT, resumable } from '../program/command.ts';
import { defineAction, OUT_OPTIONS, requiredOut } from './action.ts';

const options = {
  ...OUT_OPTIONS,
  ...SERVER_OPTIONS,
  index: SERVED_INDEX_OPTION,
  restart: { ...RESTART_OPTION, help: RESTART_OPTION.help.replace('Begin', 'For candidates: begin') },
  k: option.integer(
    { min: 1, max: 10_000, default: DEFAULT_CANDIDATES },
    'For candidates: passages per search. Step 3-2 makes utilities only for rounds with exactly 20.',
  ),
  records: option.flag(
    'For candidates: the file is a record of `trawl serve --record`, read with its rotated files. The rounds have no reasoning context.',
  ),
  questions: option.text(
    'FILE',
    'For candidates with --records: questions as JSON lines, {"id", "question", "golden_answers"}, for the golden answers.',
  ),
  'any-generation': option.flag(
    'For candidates with --records: allow queries that were asked in another generation of the index. Default: refuse them, because what an agent asks depends on what it found.',
  ),
  'query-form': option.choice(
    { choices: CANDIDATE_QUERY_FORMS, default: 'searched' },
    'For candidates: what is searched. searched: the text that the agent\'s search used (query_for_retrieval), as in Agentic-R; query: the sub-query; question-and-query: "QUESTION [SEP] QUERY"; question: the question.',
  ),
  'assistant-marker': option.text(
    'TEXT',
    "For candidates: the agent's own text begins after the first occurrence of TEXT in output.prompt. Default: Qwen's chat template, <|im_start|>assistant and a newline.",
  ),
  ...RANKING_OPTIONS,
  ...VIEW_OPTIONS,
  ...RERANK_OPTIONS,
  ...RETRIEVER_OPTIONS,
} as const;

type Context = CommandContext<typeof options>;

/** Step 2: candidates for each round of each trajectory. */
export const candidatesAction = defineAction({
  arguments: ['index', 'file'],
  options,
  async run(context) {
    const { options, positionals, note } = context;
    const [folder, input] = withFolder(positionals, options, context.given, 2);
    const out = requiredOut(options.out, 'candidates', 'T/passage_candidates/A/hotpotqa.json');
    const retrieving = searchSettings(options, context.given, context);
    if (!options.records) {
      refuseOptions(context.given, ['questions'], 'without --records: the trajectories have golden answers');
    }
    if (options['any-generation'] && !options.records) {
      throw usageError('--any-generation has no effect without --records: trajectories name no generation.');
    }
    const questions =
      options.questions === undefined ? undefined : (await readQuestionSet(options.questions)).questions;
    const trajectories = options.records
      ? await openRecords([input!], questions, context)
      : await openTrajectoryFile(input!, context.signal);
    const opened = await openSource({ options, folder, served: options.index, retrieving, note });
    try {
      const { generation } = opened.source.info;
      if (!options['any-generation']) refuseOthers(trajectories, generation);
      return await resumable(writeCandidates(trajectories, out, opened, context), 'Stopped. The same command resumes.');
    } finally {
      await opened.close();
    }
  },
});

async function writeCandidates(
  trajectories: OpenTrajectories,
  out: string,
  { source, server }: OpenSource,
  context: Context,
): Promise<number> {
  const { options, signal, note } = context;
  const { info } = source;
  const ranking = rankingOf(options, info, options.k);
  const settings = {
    input: trajectories.sha256,
    questions: options.questions === undefined ? null : await sha256OfFile(options.questions, signal),
    generation: info.generation,
    model: info.model?.sha256 ?? null,
    k: options.k,
    queryForm: options['query-form'],
    assistantMarker: options['assistant-marker'] ?? QWEN_ASSISTANT_MARKER,
    ranking,
    view: options.view ?? null,
    reranker: info.reranker?.name ?? null,
    ...(server && { serverView: server.view, serverVersion: server.version, serverViewSha256: server.viewSha256 }),
  };
  const output = await ResumableOutput.open<CandidateCounts>([out], {
    settings,
    restart: options.restart,
    replaces: false,
    server: server?.url,
  });
  let share = 0;
  try {
    const counts = await withProgress(options, (show) =>
      makeCandidates({
        retriever: source,
        ranking,
        k: options.k,
        form: options['query-form'],
        assistantMarker: settings.assistantMarker,
        trajectories: (skip) => {
          if (skip > 0) note(`Resuming after ${formatCount(skip)} trajectories.`);
          return trajectories.read(skip, (read) => (share = read));
        },
        output,
        onProgress: ({ rounds }) =>
          show({ step: 'searching candidates', share, facts: `${formatCount(rounds)} rounds` }),
        signal,
      }),
    );
    await output.finish(counts, { counts });
    report(out, counts, context);
    return counts.failed > 0 ? EXIT.failed : EXIT.ok;
  } finally {
    await output.close();
  }
}

/** @throws TrawlError CORPUS_BAD_LINE for records that another generation of the index answered. */
function refuseOthers({ generations = [] }: OpenTrajectories, generation: string): void {
  const other = generations.find((each) => each.generation !== generation);
  if (other === undefined) return;
  const { file, line } = other;
  throw new TrawlError(
    'CORPUS_BAD_LINE',
    `${file}:${line}: the query was asked in index generation ${other.generation || '(none)'}, and this index is ${generation}. ` +
      'Search in the index that the agent used, or allow any with --any-generation.',
    { details: { file, line } },
  );
}

const DROPPED_BECAUSE: Readonly<Record<DropReason, string>> = {
  'never-searched': 'never searched',
  'no-question': 'have no question',
  'no-assistant-text': 'have a prompt without --assistant-marker',
  'search-tags-differ': 'have another number of </search> than of searches',
};

function report(out: string, counts: CandidateCounts, { options, out: print, note }: Context): void {
  reportFailed(out, counts);
  if (options.json) {
    print(JSON.stringify({ out, report: reportPath(out), k: options.k, ...counts }));
    return;
  }
  print(`${out}: ${formatNumberOf(counts.rounds, 'round')} of ${formatCount(counts.written)} trajectories`);
  for (const reason of DROP_REASONS) {
    if (counts.dropped[reason] > 0)
      print(`  dropped: ${formatCount(counts.dropped[reason])} ${DROPPED_BECAUSE[reason]}`);
  }
  if (counts.truncated > 0) print(`  ${formatCount(counts.truncated)} queries truncated to the token limit`);
  if (counts.short > 0) print(`  ${formatNumberOf(counts.short, 'round')} with fewer than ${options.k} candidates`);
  if (counts.withoutText > 0) {
    print(
      `  ${formatCount(counts.withoutText)} without output.prompt: reasoning_context is empty, fill it before step 3-2`,
    );
  }
  if (counts.otherIds === 0) return;
  note(
    `The ids of this index are not its row numbers, which Agentic-R's later steps look up. Give them the passages.jsonl of ` +
      '`trawl agentic-r hand-over`, whose ids are row numbers, instead of the corpus.',
  );
}

/** As `trawl search --queries` says it, also with --quiet and --json. */
function reportFailed(out: string, { failed, failures, rounds }: CandidateCounts): void {
  if (failed === 0) return;
  const named = failures.map(({ message }) => `  ${message}\n`).join('');
  const more = failed > failures.length ? `  and ${formatCount(failed - failures.length)} more\n` : '';
  process.stderr.write(
    `${out}: ${formatCount(failed)} of ${formatNumberOf(rounds, 'round')} failed and have no candidates:\n${named}${more}`,
  );
}
