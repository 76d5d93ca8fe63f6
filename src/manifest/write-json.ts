import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

export async function writeJsonDurably(path: string, value: unknown): Promise<void> {
  await writeFileDurably(path, `${JSON.stringify(value, null, 2)}\n`);
}

/**
 * Writes a file so that it is there whole or not at all, also after a power cut: a temporary file beside it is made
 * durable, then renamed.
 */
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

/** Makes the entries of a folder (new files, renames) durable. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
