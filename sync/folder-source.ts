import { createReadStream } from 'node:fs';
import { TrawlError } from '../src/errors.ts';
import { HeldIndex } from '../src/index-files/held-index.ts';
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
      async readManifest(path) {
        return held.snapshot.texts.get(path)!;
      },
      async facts(path) {
        const { bytes, tag } = fileOf(path);
        return { bytes, tag };
      },
      read(path, offset, signal) {
        const { handle, bytes } = fileOf(path);
        if (offset >= bytes) return nothing();
        const options = {
          fd: handle.fd,
          start: offset,
          end: bytes - 1,
          autoClose: false,
          highWaterMark: CHUNK_BYTES,
          signal,
        };
        return createReadStream('', options) as AsyncIterable<Uint8Array>;
      },
      close: () => held.close(),
    } satisfies CopySource;
  };
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
