import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

export async function writeJsonDurably(path: string, value: unknown): Promise<void> {
  await writeFileDurably(path, `${JSON.stringify(value, null, 2)}\n`);
}

/** Writes a file atomically and durably: a temporary file beside it is synced to disk, then renamed. */
export async function writeFileDurably(path: string, content: string | Uint8Array): Promise<void> {
  const temporary = `${path}.tmp`;
  try {
    const file = await open(temporary, 'w');
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

/** Writes all bytes at a position. `FileHandle.write` may write fewer, and refuses 2 GiB and more. */
export async function writeAt(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    done += (await file.write(bytes, done, Math.min(bytes.length - done, 2 ** 30), position + done)).bytesWritten;
  }
}

/** Syncs a folder to disk, so that new files and renames in it survive a power loss. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
