import { compressionOf } from '../corpus/corpus-format.ts';
import { LineSplitter, type RawLine } from '../corpus/line-splitter.ts';
import type { CorpusFile } from '../corpus/list-corpus-files.ts';
import { readBytes } from '../corpus/read-bytes.ts';
import { readingFailed } from '../corpus/read-lines.ts';

/** Bytes of lines in a batch, unless a single line has more. It decides where packed blocks end: output depends on it. */
const BATCH_BYTES = 1024 * 1024;

/** A line of more bytes is a bad line. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;

const LF = Buffer.from('\n');

/** Lines of one file that follow each other. */
export interface DocumentBatch {
  readonly file: string;
  /** From 1. */
  readonly firstLine: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The one line of the batch is too long, and its bytes are not here. */
  readonly tooLong: boolean;
}

/** The lines of a file in batches, which do not depend on how the file is read. */
export async function* documentBatches(
  file: CorpusFile,
  onRead: (chunk: Buffer) => void,
): AsyncGenerator<DocumentBatch, void> {
  const splitter = new LineSplitter({ newline: 'lf', maxLineBytes: MAX_LINE_BYTES });
  let lines: RawLine[] = [];
  let size = 0;
  const take = (): DocumentBatch => {
    const batch = toBatch(file.path, lines);
    lines = [];
    size = 0;
    return batch;
  };
  try {
    for await (const chunk of readBytes(file.path, { compression: compressionOf(file.format), onRead })) {
      for (const line of splitter.push(chunk)) {
        if (line.bytes === null && lines.length > 0) yield take();
        lines.push(line);
        size += line.sizeBytes;
        if (size >= BATCH_BYTES || line.bytes === null) yield take();
      }
    }
    for (const line of splitter.end()) {
      if (line.bytes === null && lines.length > 0) yield take();
      lines.push(line);
    }
    if (lines.length > 0) yield take();
  } catch (error) {
    throw readingFailed(file.path, splitter.nextNumber, error);
  }
}

function toBatch(file: string, lines: readonly RawLine[]): DocumentBatch {
  const firstLine = lines[0]!.number;
  const tooLong = lines[0]!.bytes === null;
  const pieces = lines.flatMap(({ bytes }) => (bytes === null ? [] : [bytes, LF]));
  const joined = Buffer.concat(pieces);
  const start = firstLine === 1 && joined.subarray(0, 3).equals(Buffer.from([0xef, 0xbb, 0xbf])) ? 3 : 0;
  return { file, firstLine, bytes: new Uint8Array(joined.subarray(start)), tooLong };
}
