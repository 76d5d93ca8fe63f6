import { readFile } from 'node:fs/promises';
import { TrawlError, usageError } from '../../src/base/errors.ts';
import { formatNumberOf } from '../../src/base/format.ts';
import { mergeRecords } from '../../training/records/merge-records.ts';
import {
  type AnyLine,
  type DamagedLine,
  headOf,
  type ReadRecordsOptions,
  readAllRecords,
} from '../../training/records/read-records.ts';
import { recordFilter } from '../../training/records/record-filter.ts';
import { RecordSummary } from '../../training/records/record-statistics.ts';
import { redactor } from '../../training/records/redact-record.ts';
import { actionOf } from '../options/checks.ts';
import * as option from '../options/option.ts';
import { type CommandContext, defineCommand, EXIT } from '../program/command.ts';
import { writeRecords } from '../records/record-output.ts';
import { statisticsText } from '../records/statistics-text.ts';

const ACTIONS = ['stats', 'cat', 'merge', 'redact'] as const;
type Action = (typeof ACTIONS)[number];

/** Shortest secret for hashes, in bytes. */
const MIN_KEY_BYTES = 16;

const options = {
  since: option.text('TIME', 'Only records from this date or time (UTC) on.'),
  until: option.text('TIME', 'Only records before this date or time (UTC).'),
  trajectory: option.list('ID', 'Only records of this trajectory. May be repeated.'),
  generation: option.list('ID', 'Only records of this generation of an index. May be repeated.'),
  dialect: option.list('NAME', 'Only records of this dialect. May be repeated.'),
  index: option.list('NAME', 'Only records of this index. May be repeated.'),
  policy: option.list('NAME', 'Only records of this policy. May be repeated.'),
  dataset: option.list('NAME', 'Only records of this data set. May be repeated.'),
  split: option.list('NAME', 'Only records of this split, such as train. May be repeated.'),
  unique: option.flag(
    'merge: write equal records once: those equal in trajectory, turn, question and query, or without a trajectory or turn in the whole line.',
  ),
  drop: option.list(
    'FIELD',
    'redact: leave this field out (a history that is not named is treated as its query or question): query, question, history, trajectory, questionId, dataset, policy, split, tags, requestId, traceId, spanId, view, index, ids, turn, step or filter. May be repeated.',
  ),
  hash: option.list(
    'FIELD',
    'redact: write keyed hashes in place of the texts of this field; equal texts have equal hashes in all fields. May be repeated.',
  ),
  'key-file': option.text(
    'FILE',
    'redact: file with the secret of the hashes, at least 16 bytes. Keep it: the same secret gives the same hashes.',
  ),
  out: option.text('FILE', 'Write to FILE. Default: standard output.'),
  overwrite: option.flag('Replace FILE if it exists.'),
  'skip-damaged': option.flag('Leave out damaged lines and report their number. Default: refuse them.'),
} as const;

const SELECTION = ['since', 'until', 'trajectory', 'generation', 'dialect', 'index', 'policy', 'dataset', 'split'];
const OUTPUT = ['out', 'overwrite', 'skip-damaged'];

/** The options that an action has. */
const OPTIONS_OF: Readonly<Record<Action, readonly string[]>> = {
  stats: SELECTION,
  cat: [...SELECTION, ...OUTPUT],
  merge: [...SELECTION, ...OUTPUT, 'unique'],
  redact: [...SELECTION, ...OUTPUT, 'drop', 'hash', 'key-file'],
};

type Context = CommandContext<typeof options>;

export const recordsCommand = defineCommand({
  name: 'records',
  summary: 'statistics, selection, merging and redaction of the files of trawl serve --record',
  description:
    'Reads the files that `trawl serve --record FILE` wrote. FILE stands for itself and its renamed files (FILE.1, ' +
    'FILE.2.zst, …), which are read first, the oldest before the others. docs/recording.md describes the fields.\n\n' +
    '`stats` counts queries, trajectories, turns, repeated queries and errors. `cat` writes records as JSON lines, ' +
    'uncompressed. `merge` does so for the files of several servers, sorted by time. `redact` leaves fields out or hashes them.\n\n' +
    'The unfinished last line of a killed server is left out. Any other damaged line is refused with file and line; `stats` ' +
    'counts it, and its exit code is then 3.\n\n' +
    'With --json: stats {"queries", "from", "to", "errors", "trajectories", "distinctQueries", "repeatedQueries", "retries", ' +
    '"cut", "perturbed", "dialects", "indexes", "generations", "modes", "k", "turns", "policies", "datasets", "splits", "unfinishedLines", ' +
    '"damagedLines", "damaged"}.',
  positionals: {
    usage: '<action> <file…>',
    help: { action: 'stats, cat, merge or redact.', file: 'Files of --record.' },
    words: ACTIONS,
    max: 1000,
  },
  options,
  examples: [
    'trawl records stats record.jsonl',
    'trawl records cat record.jsonl --split train --since 2026-11-01 --out train.jsonl',
    'trawl records merge a/record.jsonl b/record.jsonl --unique --out all.jsonl',
    'trawl records redact all.jsonl --hash question --hash query --hash history --key-file secret --drop tags --out shared.jsonl',
  ],
  async run(context) {
    const [first, ...files] = context.positionals;
    const action = actionOf('records', ACTIONS, first);
    const misplaced = Object.keys(options).find(
      (name) => context.given.has(name) && !OPTIONS_OF[action].includes(name),
    );
    if (misplaced !== undefined) {
      throw usageError(`trawl records ${action} has no option --${misplaced}. See \`trawl records --help\`.`);
    }
    if (action === 'stats') return stats(files, context);
    if (action === 'cat') return write(files, context, (reading) => readAllRecords(files, reading));
    if (action === 'merge') return merge(files, context);
    return redact(files, context);
  },
});

async function stats(files: readonly string[], { options, signal, out }: Context): Promise<number> {
  const summary = new RecordSummary();
  const selected = recordFilter(options);
  const onDamaged = (line: DamagedLine): void => summary.addDamaged(line);
  for await (const line of readAllRecords(files, { onDamaged, signal })) {
    if (!selected(headOf(line))) continue;
    if ('query' in line) summary.add(line.query);
    else summary.addOpening(line.opening);
  }
  const statistics = summary.statistics();
  out(options.json ? JSON.stringify(statistics) : statisticsText(statistics));
  return statistics.damagedLines === 0 ? EXIT.ok : EXIT.problems;
}

async function merge(files: readonly string[], context: Context): Promise<number> {
  let repeated = 0;
  const { unique } = context.options;
  const onRepeated = (): void => void repeated++;
  const code = await write(files, context, (reading) => mergeRecords(files, { ...reading, unique, onRepeated }));
  if (repeated > 0) context.note(`${formatNumberOf(repeated, 'repeated record')} left out.`);
  return code;
}

async function redact(files: readonly string[], context: Context): Promise<number> {
  const { drop, hash, 'key-file': keyFile } = context.options;
  if (drop.length + hash.length === 0) {
    throw usageError('trawl records redact needs --drop FIELD or --hash FIELD.');
  }
  const change = redactor({ drop, hash, key: keyFile === undefined ? undefined : await readKey(keyFile) });
  return write(files, context, (reading) => readAllRecords(files, reading), change, 'redacted record');
}

/** Writes the selected records, their lines changed by `change`. */
async function write(
  files: readonly string[],
  { options, signal, note }: Context,
  read: (reading: ReadRecordsOptions) => AsyncIterable<AnyLine>,
  change: (line: string) => string = (line) => line,
  noun = 'record',
): Promise<number> {
  let damaged = 0;
  let unfinished = 0;
  const onDamaged = (line: DamagedLine): void => {
    if (line.unfinished) unfinished++;
    else if (options['skip-damaged']) damaged++;
    else throw damagedLine(line);
  };
  const selected = recordFilter(options);
  async function* lines(): AsyncGenerator<string, void> {
    for await (const line of read({ onDamaged, signal })) if (selected(headOf(line))) yield change(line.text);
  }
  const { out, overwrite } = options;
  const written = await writeRecords(lines(), { out, overwrite, inputs: files });
  if (out !== undefined) note(`${out}: ${formatNumberOf(written, noun)}.`);
  if (unfinished > 0) note(`${formatNumberOf(unfinished, 'unfinished last line')} left out.`);
  if (damaged === 0) return EXIT.ok;
  note(`${formatNumberOf(damaged, 'damaged line')} left out. \`trawl records stats\` lists them.`);
  return EXIT.problems;
}

function damagedLine({ file, line, reason }: DamagedLine): TrawlError {
  const advice = 'Leave damaged lines out with --skip-damaged';
  return new TrawlError('CORPUS_BAD_LINE', `${file}:${line}: ${reason}. ${advice}.`, { details: { file, line } });
}

async function readKey(file: string): Promise<Uint8Array> {
  let key: Uint8Array;
  try {
    key = await readFile(file);
  } catch (cause) {
    throw usageError(`--key-file ${file} cannot be read: ${(cause as Error).message}.`, { cause });
  }
  if (key.length >= MIN_KEY_BYTES) return key;
  throw usageError(
    `--key-file ${file} has ${formatNumberOf(key.length, 'byte')}; expected at least ${MIN_KEY_BYTES}, such as head -c 32 /dev/urandom writes.`,
  );
}
