import { Fingerprints } from './fingerprints.ts';
import { type AnyLine, headOf, type ReadRecordsOptions, readAllRecordFiles } from './read-records.ts';
import { closeAll, openRecordSets } from './record-files.ts';
import { trajectoryKey } from './recorded-query.ts';

export interface MergeOptions extends ReadRecordsOptions {
  /** Whether equal records count once: see `isNew`. Default: false. */
  readonly unique?: boolean;
  /** Called for each record that is left out because an earlier one equals it. */
  readonly onRepeated?: () => void;
}

/**
 * Merges the records of several servers by time; records of one path stay in their order. Memory holds one line per path, and with
 * `unique` about 50 bytes for each record.
 */
export async function* mergeRecords(
  paths: readonly string[],
  { unique = false, onRepeated, ...options }: MergeOptions = {},
): AsyncGenerator<AnyLine, void> {
  const seen = new Fingerprints();
  const sets = await openRecordSets(paths);
  const all = sets.map((files) => readAllRecordFiles(files, options));
  const sources: { readonly lines: AsyncGenerator<AnyLine, void>; next: AnyLine }[] = [];
  try {
    for (const lines of all) {
      const first = await lines.next();
      if (first.done !== true) sources.push({ lines, next: first.value });
    }
    while (sources.length > 0) {
      const source = sources.reduce((best, each) => (headOf(each.next).time < headOf(best.next).time ? each : best));
      if (!unique || isNew(source.next, seen)) yield source.next;
      else onRepeated?.();
      const following = await source.lines.next();
      if (following.done === true) sources.splice(sources.indexOf(source), 1);
      else source.next = following.value;
    }
  } finally {
    await Promise.all(all.map((lines) => lines.return()));
    // Files of which no line was read.
    await closeAll(sets.flat());
  }
}

/**
 * Whether no earlier record is equal: in trajectory, turn, question, query (or the name that was opened) and success, so that a call that
 * a client repeated counts once; without a trajectory or turn, in the whole line. A failed query does not hide the repeated one that succeeded.
 */
function isNew(line: AnyLine, seen: Fingerprints): boolean {
  const head = headOf(line);
  const { trajectory, turn, question } = head;
  if (trajectory === undefined || turn === undefined) return seen.add(line.text);
  const what =
    'query' in line
      ? [question, line.query.query, line.query.error === undefined ? 'answered' : 'failed']
      : [question, line.opening.opened, 'opened'];
  return seen.add(...trajectoryKey(head), turn, ...what);
}
