import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import type { IndexDirectory } from '../src/retrieval/index-directory.ts';
import { passagesOf, type RowChoice, vectorBlocks } from './index-rows.ts';
import { idText } from './write-lines.ts';
import type { Sink } from './write-vectors.ts';

/** Values of vectors in a row group: what is held at once. */
const GROUP_VALUES = 1024 * 1024;

/** Columns of the file: the vector is a list of float32, as pyarrow and datasets read it. */
const SCHEMA = [
  { name: 'root', num_children: 3 },
  { name: 'id', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'OPTIONAL' },
  { name: 'document', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
  { name: 'vector', converted_type: 'LIST', repetition_type: 'REQUIRED', num_children: 1 },
  { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
  { name: 'element', type: 'FLOAT', repetition_type: 'REQUIRED' },
] as const;

interface Group {
  ids: (string | null)[];
  documents: string[];
  vectors: number[][];
}

/** Writes id, document (the JSON text of the corpus row) and vector, a row group at a time. */
export async function writeParquet(
  directory: IndexDirectory,
  choice: RowChoice,
  sink: Sink,
  onRows: (rows: number) => void,
): Promise<void> {
  const { dimension } = directory.source;
  const buffer = new ByteWriter();
  const writer = new ParquetWriter({
    writer: buffer,
    schema: SCHEMA.map((element) => ({ ...element })),
    statistics: false,
  });
  const groupRows = Math.max(1, Math.floor(GROUP_VALUES / dimension));
  const flush = async (): Promise<void> => {
    await sink(buffer.getBytes());
    buffer.index = 0;
  };
  const passages = passagesOf(directory, choice);
  let group: Group = { ids: [], documents: [], vectors: [] };
  const writeGroup = async (): Promise<void> => {
    const rows = group.ids.length;
    if (rows === 0) return;
    await writer.write({
      columnData: [
        { name: 'id', data: group.ids },
        { name: 'document', data: group.documents },
        // A dictionary of floats is not smaller than they are, and neither are they packed.
        { name: 'vector', data: group.vectors, encoding: 'PLAIN', codec: 'UNCOMPRESSED' },
      ],
      rowGroupSize: rows,
    });
    await flush();
    onRows(rows);
    group = { ids: [], documents: [], vectors: [] };
  };
  for await (const block of vectorBlocks(directory, choice)) {
    for (let start = 0; start < block.length; start += dimension) {
      const { value } = await passages.next();
      if (value === undefined) break;
      group.ids.push(idText(value.id));
      group.documents.push(value.document);
      group.vectors.push(Array.from(block.subarray(start, start + dimension)));
      if (group.ids.length === groupRows) await writeGroup();
    }
  }
  // Its end is where the number of passages is compared with the rows.
  await passages.next();
  await writeGroup();
  await writer.finish();
  await flush();
}
