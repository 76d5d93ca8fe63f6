import { type FileHandle, open } from 'node:fs/promises';

/** What every line of a record begins with. */
const LINE_START = '{"time":';

const LINE_END = 0x0a;

const CHUNK_BYTES = 64 * 1024;
/** Longest line that readers take, and that is parsed here. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/**
 * Repairs the last line of a file whose writer was killed: a record that is not complete is cut off, because with a line end readers would
 * refuse it, and a complete one gets its line end. A last line that is not a record gets a line end, so that nothing of another program is lost.
 * Returns whether a record was cut off.
 *
 * @param file opened for appending. @param path of the same file.
 * @throws the system's error; the file is unchanged then.
 */
export async function repairLastLine(file: FileHandle, path: string): Promise<boolean> {
  const opened = await file.stat();
  if (!opened.isFile() || opened.size === 0) return false;
  const reader = await open(path, 'r').catch(() => undefined);
  if (reader === undefined) return false;
  try {
    const named = await reader.stat();
    if (named.ino !== opened.ino || named.dev !== opened.dev) return false;
    const start = await lastLineStart(reader, opened.size);
    if (start === opened.size) return false;
    if (await isUnfinishedRecord(reader, start, opened.size)) {
      await file.truncate(start);
      return true;
    }
    await file.writeFile('\n');
    return false;
  } finally {
    await reader.close();
  }
}

/** Where the bytes behind the last line end begin. */
async function lastLineStart(reader: FileHandle, size: number): Promise<number> {
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - CHUNK_BYTES);
    const at = (await readBytes(reader, start, end)).lastIndexOf(LINE_END);
    if (at !== -1) return start + at + 1;
    end = start;
  }
  return 0;
}

async function isUnfinishedRecord(reader: FileHandle, start: number, end: number): Promise<boolean> {
  const head = (await readBytes(reader, start, Math.min(end, start + LINE_START.length))).toString('latin1');
  if (!LINE_START.startsWith(head)) return false;
  if (end - start > MAX_LINE_BYTES) return true;
  try {
    JSON.parse((await readBytes(reader, start, end)).toString('utf8'));
    return false;
  } catch {
    return true;
  }
}

async function readBytes(reader: FileHandle, start: number, end: number): Promise<Buffer> {
  const bytes = Buffer.alloc(end - start);
  for (let filled = 0; filled < bytes.length; ) {
    const { bytesRead } = await reader.read(bytes, filled, bytes.length - filled, start + filled);
    // Another program truncated the file meanwhile.
    if (bytesRead === 0) return bytes.subarray(0, filled);
    filled += bytesRead;
  }
  return bytes;
}
