import { basename } from 'node:path';
import { readQuestionSet } from '../../evaluation/question-set.ts';
import { usageError } from '../../src/base/errors.ts';
import { LineOutput } from '../../src/base/system/line-output.ts';
import { openRecords } from '../../training/trajectories/open-trajectories.ts';
import { readTrajectories } from '../../training/trajectories/read-trajectories.ts';
import { reportHtml } from '../../training/trajectories/report/report-html.ts';
import { reportText } from '../../training/trajectories/report/report-text.ts';
import { trajectoryReport } from '../../training/trajectories/report/trajectory-report.ts';
import type { Trajectory } from '../../training/trajectories/trajectory.ts';
import { openTruncationCheck, type TruncationCheck } from '../../training/trajectories/truncation-check.ts';
import { actionOf } from '../options/checks.ts';
import { defineCommand, EXIT } from '../program/command.ts';

export const trajectoriesCommand = defineCommand({
  name: 'trajectories',
  summary: 'report what search agents reached by turn, and which of their searches brought nothing',
  description:
    '`trawl trajectories report` reads trajectories and prints, by turn and by question type: how many had been shown their gold ' +
    'passages or an answer, and how many queries were repeated, brought no new passage, showed passages again or were truncated. ' +
    '--html also writes one page that opens without a network. docs/agentic-r.md defines the numbers.\n\n' +
    'With --json: {"all", "types", "unknownQuestions"}, where all and each of types is {"type", "trajectories", "withoutSearch", ' +
    '"meanTurns", "judged", "answerable", "correct", "queries", "repeated", "unchanged", "shown", "shownBefore", "truncated", ' +
    '"goldAny", "goldAll", "goldRecall", "answer", "turns"}.',
  positionals: {
    usage: '<action> <file…>',
    help: {
      action: 'report.',
      'file…':
        "Trajectories as Agentic-R's step 1 writes them (intermediate_data.json), or JSON lines of the same items.",
    },
    words: ['report'],
    min: 2,
    max: Number.POSITIVE_INFINITY,
  },
  options: {
    records: {
      type: 'flag',
      help: 'The files are records of `trawl serve --record`, read with their rotated files; docs/recording.md says how clients name their trajectories.',
    },
    questions: {
      type: 'string',
      value: 'FILE',
      help: 'Questions as JSON lines: {"id", "question", "gold_ids"?, "golden_answers"?, "type"?}. Without it only the golden answers of the trajectories are known.',
    },
    html: {
      type: 'string',
      value: 'FILE',
      help: 'Also write the report as an HTML page. An existing file is replaced.',
    },
    model: {
      type: 'string',
      value: 'NAME|DIR',
      help: "The model whose tokenizer says which queries were truncated, by the text that was searched: the trajectories do not say it. With the model's prefix for queries.",
    },
    'max-query-tokens': {
      type: 'integer',
      min: 3,
      max: 100_000,
      help: "With --model: the token limit of the agent's searches, such as 128 in Agentic-R. Default: that of the model.",
    },
  },
  examples: [
    'trawl trajectories report T/trajectory/A/hotpotqa.json',
    'trawl trajectories report --records calls.jsonl --questions questions.jsonl',
    'trawl trajectories report hotpotqa.json --questions questions.jsonl --model e5-base-v2 --max-query-tokens 128 --html report.html',
  ],
  async run({ positionals, options: given, signal, out, note }) {
    const [action, ...files] = positionals;
    actionOf('trajectories', ['report'], action);
    if (given['max-query-tokens'] !== undefined && given.model === undefined) {
      throw usageError('--max-query-tokens has no effect without --model, whose tokenizer counts the tokens.');
    }
    if (given.records && given.model !== undefined) {
      throw usageError('--model has no effect with --records, which say what was truncated.');
    }
    const questions = given.questions === undefined ? undefined : (await readQuestionSet(given.questions)).questions;
    const check =
      given.model === undefined ? undefined : await openTruncationCheck(given.model, given['max-query-tokens']);
    const page = given.html === undefined ? undefined : await LineOutput.create(given.html, true);
    try {
      const trajectories = given.records
        ? (await openRecords(files, questions, { signal, note })).read(0, () => undefined)
        : allTrajectories(files, check, signal);
      const report = await trajectoryReport(trajectories, questions);
      await page?.write(reportHtml(report, `Trajectories: ${files.map((file) => basename(file)).join(', ')}`));
      await page?.publish();
      out(given.json ? JSON.stringify(report) : reportText(report));
      if (given.html !== undefined) note(`${given.html}: the report as a page`);
      return EXIT.ok;
    } finally {
      await page?.discard();
    }
  },
});

async function* allTrajectories(
  files: readonly string[],
  isTruncated: TruncationCheck | undefined,
  signal: AbortSignal,
): AsyncGenerator<Trajectory, void> {
  for (const file of files) {
    for await (const trajectory of readTrajectories(file, { signal })) {
      if (isTruncated === undefined) yield trajectory;
      else {
        const searches = trajectory.searches.map((search) => ({
          ...search,
          truncated: isTruncated(search.searchedText),
        }));
        yield { ...trajectory, searches };
      }
    }
  }
}
