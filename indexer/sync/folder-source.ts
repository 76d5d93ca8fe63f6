import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { bytesOf, HeldIndex } from '../../src/index/files/held-index.ts';
import type { CopySource, OpenSource } from './copy-source.ts';

const CHUNK_BYTES = 1024 * 1024;

/** An index in a folder. Its files are held open, so that an update of the folder does not disturb the copy. */
export function folderSource(folder: string): OpenSource {
  return async () => {
    const held = await HeldIndex.open(folder);
    const fileOf = (path: string) => {
      const file = held.file(path);
      if (file !== undefined) return file;
      throw new TrawlError('SOURCE_CHANGED', `${folder}: ${path} is no file of the index.`);
    };
    return {
      shown: folder,
      folder: held.folder,
      async readManifest(path) {
        return held.snapshot.texts.get(path)!;
      },
      async facts(path) {
        const { bytes, tag } = fileOf(path);
        return { bytes, tag };
      },
      async *read(path, offset, signal) {
        const file = fileOf(path);
        for await (const chunk of bytesOf(file, { first: offset, last: file.bytes - 1, chunkBytes: CHUNK_BYTES })) {
          throwIfCancelled(signal);
          yield chunk;
        }
      },
      close: () => held.close(),
    } satisfies CopySource;
  };
}
