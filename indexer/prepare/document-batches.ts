import { LineSplitter, type RawLine } from '../../corpus/line-splitter.ts';
import type { CorpusFile } from '../../corpus/list-corpus-files.ts';
import { readBytes } from '../../corpus/read-bytes.ts';
import { readingFailed } from '../../corpus/read-errors.ts';

/**
 * A batch ends with the line that reaches this size, in bytes. The output depends on it: each batch becomes one compressed
 * block.
 */
const BATCH_BYTES = 1024 * 1024;

/** A longer line is a bad line. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;

const LF = Buffer.from('\n');

export interface DocumentBatch {
  readonly file: string;
  /** Line number in the file, from 1. */
  readonly firstLine: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The batch is a single line of more than `MAX_LINE_BYTES`; `bytes` is empty. */
  readonly tooLong: boolean;
}

/** Reads a file in batches of lines. Their boundaries depend only on the content, not on the sizes of the chunks read. */
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
    for await (const chunk of readBytes(file.path, { compression: file.format.compression, onRead })) {
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
