import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { type OpenedShard, within } from '../../src/search/opening/index-directory.ts';
import { problem, problemOf, type VerifyProblem } from './verify-problem.ts';

/** Rows between two checks of the signal. */
const CHECK_EVERY = 4096;

/**
 * Checks a passage file: SQLite checks every page and compares each look-up with its table. Then every row: row numbers have no
 * gaps, the content hash matches, and line numbers ascend within each corpus file.
 *
 * @param onBytes called with byte counts that add up to the size of the file.
 */
export async function passageProblems(
  shard: OpenedShard,
  { onBytes, signal }: { onBytes: (bytes: number) => void; signal: AbortSignal | undefined },
): Promise<VerifyProblem[]> {
  const path = within(shard.folder, shard.manifest.passages.path);
  let file: PassageFile;
  try {
    file = new PassageFile(path);
  } catch (error) {
    // Header and size were checked before, so the damage is in the pages.
    return [problemOf(error, path)];
  }
  try {
    const bytes = statSync(path).size;
    const damaged = file.integrityProblems();
    onBytes(bytes / 2);
    if (damaged.length === 0) damaged.push(...file.brokenLookups());
    if (damaged.length > 0) return damaged.map((found) => problem(path, found.replaceAll('\n', ' ')));
    return await contentProblems(file, path, shard, { bytes: bytes / 2, onBytes, signal });
  } catch (error) {
    return [problemOf(error, path)];
  } finally {
    file.close();
  }
}

async function contentProblems(
  file: PassageFile,
  path: string,
  { manifest }: OpenedShard,
  { bytes, onBytes, signal }: { bytes: number; onBytes: (bytes: number) => void; signal: AbortSignal | undefined },
): Promise<VerifyProblem[]> {
  const hash = createHash('sha256');
  const passagesByFile = manifest.corpus.files.map(({ passages }) => passages);
  const isInOrder = lineOrder(passagesByFile, manifest.rows);
  let rows = 0;
  for (const { row, line, document } of file.passages()) {
    if (row !== rows) return [problem(path, `expected row ${rows}, found row ${row}`)];
    if (!isInOrder(line)) {
      return [problem(path, `row ${row} has line ${line}, but the row before it has a later line`)];
    }
    if (++rows % CHECK_EVERY === 0) {
      onBytes((bytes * CHECK_EVERY) / Math.max(1, manifest.rows));
      // Yield to the event loop, so that process signals are handled.
      await setImmediate();
      throwIfCancelled(signal);
    }
    hash.update(document).update('\n');
  }
  const problems: VerifyProblem[] = [];
  if (rows !== manifest.rows) problems.push(problem(path, `${rows} passages for ${manifest.rows} vectors`));
  const sha256 = hash.digest('hex');
  if (sha256 !== manifest.passages.sha256) {
    problems.push(problem(path, `content hash is ${sha256}, the manifest says ${manifest.passages.sha256}`));
  }
  return problems;
}

/** Whether the next line number ascends within its corpus file. Accepts any order if the counts do not add up to the rows. */
function lineOrder(passagesByFile: readonly number[], rows: number): (line: number) => boolean {
  const sum = passagesByFile.reduce((total, passages) => total + passages, 0);
  const left = sum === rows ? [...passagesByFile] : [];
  let before = 0;
  return (line) => {
    if (left.length === 0) return true;
    while (left[0] === 0) {
      left.shift();
      before = 0;
    }
    if (left.length > 0) left[0]!--;
    const isLater = line > before;
    before = line;
    return isLater;
  };
}
