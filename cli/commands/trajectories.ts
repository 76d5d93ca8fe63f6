import { basename } from 'node:path';
import { readQuestionSet } from '../../evaluation/question-set.ts';
import { PartialFile } from '../../src/base/system/partial-file.ts';
import { readTrajectories } from '../../training/trajectories/read-trajectories.ts';
import { openRecords } from '../../training/trajectories/recorded-trajectories.ts';
import { reportHtml } from '../../training/trajectories/report/report-html.ts';
import { reportText } from '../../training/trajectories/report/report-text.ts';
import { trajectoryReport } from '../../training/trajectories/report/trajectory-report.ts';
import type { Trajectory } from '../../training/trajectories/trajectory.ts';
import { openTruncationCheck, type TruncationCheck } from '../../training/trajectories/truncation-check.ts';
import { actionOf, refuseOptions } from '../options/checks.ts';
import * as option from '../options/option.ts';
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
    max: Number.POSITIVE_INFINITY,
  },
  options: {
    records: option.flag(
      'The files are records of `trawl serve --record`, read with their rotated files; docs/recording.md says how clients name their trajectories.',
    ),
    questions: option.text(
      'FILE',
      'Questions as JSON lines: {"id", "question", "gold_ids"?, "golden_answers"?, "type"?}. Without it only the golden answers of the trajectories are known.',
    ),
    html: option.text('FILE', 'Also write the report as an HTML page. An existing file is replaced.'),
    model: option.text(
      'NAME|DIR',
      "The model whose tokenizer says which queries were truncated, by the text that was searched: the trajectories do not say it. With the model's prefix for queries.",
    ),
    'max-query-tokens': option.integer(
      { min: 3, max: 100_000 },
      "With --model: the token limit of the agent's searches, such as 128 in Agentic-R. Default: the model's.",
    ),
  },
  examples: [
    'trawl trajectories report T/trajectory/A/hotpotqa.json',
    'trawl trajectories report --records calls.jsonl --questions questions.jsonl',
    'trawl trajectories report hotpotqa.json --questions questions.jsonl --model e5-base-v2 --max-query-tokens 128 --html report.html',
  ],
  async run({ positionals, options, given, signal, out, note }) {
    const [action, ...files] = positionals;
    actionOf('trajectories', ['report'], action);
    if (options.model === undefined) {
      refuseOptions(given, ['max-query-tokens'], 'without --model, whose tokenizer counts the tokens');
    }
    if (options.records) refuseOptions(given, ['model'], 'with --records, which say what was truncated');
    const questions =
      options.questions === undefined ? undefined : (await readQuestionSet(options.questions)).questions;
    const check =
      options.model === undefined ? undefined : await openTruncationCheck(options.model, options['max-query-tokens']);
    const page = options.html === undefined ? undefined : await PartialFile.create(options.html, true);
    try {
      const trajectories = options.records
        ? (await openRecords(files, questions, { signal, note })).read(0, () => undefined)
        : allTrajectories(files, check, signal);
      const report = await trajectoryReport(trajectories, questions);
      await page?.write(reportHtml(report, `Trajectories: ${files.map((file) => basename(file)).join(', ')}`));
      await page?.publish();
      out(options.json ? JSON.stringify(report) : reportText(report));
      if (options.html !== undefined) note(`${options.html}: the report as a page`);
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
        const searches = trajectory.searches.map((each) => ({ ...each, truncated: isTruncated(each.searchedText) }));
        yield { ...trajectory, searches };
      }
    }
  }
}
