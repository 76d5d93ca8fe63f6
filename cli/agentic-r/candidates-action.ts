import { readQuestionSet } from '../../evaluation/question-set.ts';
import { asTrawlError, TrawlError, usageError } from '../../src/base/errors.ts';
import { formatCount, formatNumberOf } from '../../src/base/format.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { reportPath } from '../../src/base/system/output-report.ts';
import { ResumableOutput } from '../../src/base/system/resumable-output.ts';
import { DEFAULT_CANDIDATES } from '../../training/agentic-r/candidate-item.ts';
import { type CandidateCounts, makeCandidates } from '../../training/agentic-r/make-candidates.ts';
import { CANDIDATE_QUERY_FORMS, DROP_REASONS, type DropReason } from '../../training/agentic-r/trajectory-rounds.ts';
import {
  type OpenTrajectories,
  openRecords,
  openTrajectoryFile,
} from '../../training/trajectories/open-trajectories.ts';
import { QWEN_ASSISTANT_MARKER } from '../../training/trajectories/reasoning-contexts.ts';
import { openSource, SERVED_INDEX_OPTION, SERVER_OPTIONS, searchSettings, withFolder } from '../open/search-source.ts';
import { RANKING_OPTIONS, rankingOf } from '../options/ranking-options.ts';
import { RERANK_OPTIONS } from '../options/rerank-options.ts';
import { RESTART_OPTION } from '../options/restart-option.ts';
import { RETRIEVER_OPTIONS } from '../options/retriever-options.ts';
import { VIEW_OPTIONS } from '../options/view-options.ts';
import { stepProgress } from '../output/progress/step-progress.ts';
import { type CommandContext, EXIT } from '../program/command.ts';
import { defineAction } from './action.ts';
import { OUT_OPTIONS, requiredOut } from './out-options.ts';

const options = {
  ...OUT_OPTIONS,
  ...SERVER_OPTIONS,
  index: SERVED_INDEX_OPTION,
  restart: { ...RESTART_OPTION, help: RESTART_OPTION.help.replace('Begin', 'For candidates: begin') },
  k: {
    type: 'integer',
    min: 1,
    max: 10_000,
    default: DEFAULT_CANDIDATES,
    help: 'For candidates: passages per search. Step 3-2 makes utilities only for rounds with exactly 20.',
  },
  records: {
    type: 'flag',
    help: 'For candidates: the file is a record of `trawl serve --record`, read with its rotated files. The rounds have no reasoning context.',
  },
  questions: {
    type: 'string',
    value: 'FILE',
    help: 'For candidates with --records: questions as JSON lines, {"id", "question", "golden_answers"}, for the golden answers.',
  },
  'any-generation': {
    type: 'flag',
    help: 'For candidates with --records: allow queries that were asked in another generation of the index. Default: refuse them, because what an agent asks depends on what it found.',
  },
  'query-form': {
    type: 'choice',
    choices: CANDIDATE_QUERY_FORMS,
    default: 'searched',
    help: 'For candidates: what is searched. searched: the text that the agent\'s search used (query_for_retrieval), as in Agentic-R; query: the sub-query; question-and-query: "QUESTION [SEP] QUERY"; question: the question.',
  },
  'assistant-marker': {
    type: 'string',
    value: 'TEXT',
    help: "For candidates: what precedes the agent's own text in output.prompt; its first occurrence counts. Default: that of Qwen's chat template, <|im_start|>assistant and a newline.",
  },
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
    const { options: given, positionals, note } = context;
    const [folder, input] = withFolder(positionals, given, context.given, 2);
    const out = requiredOut(given.out, 'candidates', 'T/passage_candidates/A/hotpotqa.json');
    const retrieving = searchSettings(given, context.given, context);
    if (given.questions !== undefined && !given.records) {
      throw usageError('--questions has no effect without --records: the trajectories have golden answers.');
    }
    if (given['any-generation'] && !given.records) {
      throw usageError('--any-generation has no effect without --records: trajectories name no generation.');
    }
    const questions = given.questions === undefined ? undefined : (await readQuestionSet(given.questions)).questions;
    const trajectories = given.records
      ? await openRecords([input!], questions, context)
      : await openTrajectoryFile(input!, context.signal);
    const { source, server, close } = await openSource({
      options: given,
      given: context.given,
      folder,
      served: given.index,
      retrieving,
      note,
    });
    try {
      const { info } = source;
      if (!given['any-generation']) refuseOthers(trajectories, info.generation);
      const ranking = rankingOf(given, info, given.k);
      const settings = {
        input: trajectories.sha256,
        questions: given.questions === undefined ? null : await sha256OfFile(given.questions, context.signal),
        generation: info.generation,
        model: info.model?.sha256 ?? null,
        k: given.k,
        queryForm: given['query-form'],
        assistantMarker: given['assistant-marker'] ?? QWEN_ASSISTANT_MARKER,
        ranking,
        view: given.view ?? null,
        reranker: info.reranker?.name ?? null,
        ...(server === undefined
          ? {}
          : { serverView: server.view, serverVersion: server.version, serverViewSha256: server.viewSha256 }),
      };
      const output = await ResumableOutput.open<CandidateCounts>([out], {
        settings,
        restart: given.restart,
        replaces: false,
        server: server?.url,
      });
      try {
        const counts = await search(trajectories, output, { retriever: source, ranking }, context);
        await output.finish(counts, { counts });
        report(out, counts, context);
        return counts.failed > 0 ? EXIT.failed : EXIT.ok;
      } finally {
        await output.close();
      }
    } catch (error) {
      throw resumableIfCancelled(error);
    } finally {
      await close();
    }
  },
});

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

type Searching = Pick<Parameters<typeof makeCandidates>[0], 'retriever' | 'ranking'>;

async function search(
  trajectories: OpenTrajectories,
  output: ResumableOutput<CandidateCounts>,
  searching: Searching,
  { options: given, signal, note }: Context,
): Promise<CandidateCounts> {
  const progress = stepProgress({ silent: given.quiet || given.json });
  let share = 0;
  try {
    return await makeCandidates({
      ...searching,
      k: given.k,
      form: given['query-form'],
      assistantMarker: given['assistant-marker'] ?? QWEN_ASSISTANT_MARKER,
      trajectories: (skip) => {
        if (skip > 0) note(`Resuming after ${formatCount(skip)} trajectories.`);
        return trajectories.read(skip, (read) => (share = read));
      },
      output,
      onProgress: ({ rounds }) =>
        progress.update({ step: 'searching candidates', share, facts: `${formatCount(rounds)} rounds` }),
      signal,
    });
  } finally {
    progress.stop();
  }
}

const DROPPED_BECAUSE: Readonly<Record<DropReason, string>> = {
  'never-searched': 'never searched',
  'no-question': 'have no question',
  'no-assistant-text': 'have a prompt without --assistant-marker',
  'search-tags-differ': 'have another number of </search> than of searches',
};

function report(out: string, counts: CandidateCounts, { options: given, out: print, note }: Context): void {
  reportFailed(out, counts);
  if (given.json) {
    print(JSON.stringify({ out, report: reportPath(out), k: given.k, ...counts }));
    return;
  }
  print(`${out}: ${formatNumberOf(counts.rounds, 'round')} of ${formatCount(counts.written)} trajectories`);
  for (const reason of DROP_REASONS) {
    if (counts.dropped[reason] > 0)
      print(`  dropped: ${formatCount(counts.dropped[reason])} ${DROPPED_BECAUSE[reason]}`);
  }
  if (counts.truncated > 0) print(`  ${formatCount(counts.truncated)} queries truncated to the token limit`);
  if (counts.short > 0) print(`  ${formatNumberOf(counts.short, 'round')} with fewer than ${given.k} candidates`);
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

function resumableIfCancelled(error: unknown): unknown {
  if (asTrawlError(error).code !== 'CANCELLED') return error;
  return new TrawlError('CANCELLED', 'Stopped. The same command resumes.', {
    details: { resumable: true },
    cause: error,
  });
}
