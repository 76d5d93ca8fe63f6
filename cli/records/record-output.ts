import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { usageError } from '../../src/base/errors.ts';
import { PartialFile } from '../../src/base/system/partial-file.ts';
import { closeAll, openRecordSets } from '../../training/records/record-files.ts';

/** Characters per write. */
const CHUNK_CHARACTERS = 256 * 1024;

/** The lines contain users' queries: only the owner may read the file, as with `--record`. */
const MODE = 0o600;

/**
 * Writes lines to `out`, which appears when it is complete, or to standard output. Returns the number of lines.
 *
 * @throws TrawlError USAGE if `out` is one of the files that are read; OUTPUT_EXISTS, OUTPUT_NOT_WRITABLE, DISK_FULL; errors of `lines`.
 */
export async function writeRecords(
  lines: AsyncIterable<string>,
  { out, overwrite, inputs }: { out: string | undefined; overwrite: boolean; inputs: readonly string[] },
): Promise<number> {
  if (out === undefined) return writeToStandardOutput(lines);
  await refuseInput(out, inputs);
  const file = await PartialFile.create(out, overwrite, MODE);
  try {
    let written = 0;
    for await (const line of lines) {
      await file.write(`${line}\n`);
      written++;
    }
    await file.publish();
    return written;
  } catch (error) {
    await file.discard();
    throw error;
  }
}

/** Ends early when the reader closes the pipe. */
async function writeToStandardOutput(lines: AsyncIterable<string>): Promise<number> {
  let text = '';
  let written = 0;
  for await (const line of lines) {
    text += `${line}\n`;
    written++;
    if (text.length < CHUNK_CHARACTERS) continue;
    if (!(await toStandardOutput(text))) return written;
    text = '';
  }
  if (text !== '') await toStandardOutput(text);
  return written;
}

/** False after the reader closed the pipe, as `head` does. */
async function toStandardOutput(text: string): Promise<boolean> {
  const { stdout } = process;
  if (stdout.destroyed) return false;
  if (stdout.write(text)) return true;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      for (const event of ['drain', 'error', 'close']) stdout.off(event, done);
      resolve();
    };
    for (const event of ['drain', 'error', 'close']) stdout.on(event, done);
  });
  return !stdout.destroyed;
}

async function refuseInput(out: string, inputs: readonly string[]): Promise<void> {
  const existing = await stat(out).catch(() => undefined);
  if (existing === undefined) return;
  const files = (await openRecordSets(inputs)).flat();
  try {
    for (const { path, handle } of files) {
      const { dev, ino } = await handle.stat();
      if (dev !== existing.dev || ino !== existing.ino) continue;
      throw usageError(`--out ${resolve(out)} is ${path}, which is read. Choose another path.`);
    }
  } finally {
    await closeAll(files);
  }
}
