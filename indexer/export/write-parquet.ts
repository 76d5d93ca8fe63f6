import type { IndexDirectory } from '../../src/search/opening/index-directory.ts';
import { passagesOf, type RowChoice, vectorBlocks } from './index-rows.ts';
import { ParquetGroups } from './parquet-groups.ts';
import { type ContentOutput, idText } from './write-lines.ts';

/** Vector components per row group. A row group is held in memory. */
const GROUP_VALUES = 1024 * 1024;

/** The vector is a list of float32, which pyarrow and datasets can read. */
const SCHEMA = [
  { name: 'id', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'OPTIONAL' },
  { name: 'document', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
  { name: 'vector', converted_type: 'LIST', repetition_type: 'REQUIRED', num_children: 1 },
  { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
  { name: 'element', type: 'FLOAT', repetition_type: 'REQUIRED' },
] as const;

/** Writes the columns id, document (the JSON text of the corpus row) and vector. */
export async function writeParquet(
  directory: IndexDirectory,
  choice: RowChoice,
  { write, onRows }: ContentOutput,
): Promise<void> {
  const { dimension } = directory.manifest;
  const parquet = new ParquetGroups(SCHEMA);
  await write(parquet.begin());
  const groupRows = Math.max(1, Math.floor(GROUP_VALUES / dimension));
  const passages = passagesOf(directory, choice);
  let [ids, documents, vectors]: [(string | null)[], string[], number[][]] = [[], [], []];
  const writeGroup = async (): Promise<void> => {
    const rows = ids.length;
    if (rows === 0) return;
    const columns = [
      { name: 'id', data: ids },
      { name: 'document', data: documents },
      // Neither a dictionary nor compression makes vectors smaller.
      { name: 'vector', data: vectors, encoding: 'PLAIN', codec: 'UNCOMPRESSED' } as const,
    ];
    await write(parquet.write(rows, columns));
    onRows(rows);
    [ids, documents, vectors] = [[], [], []];
  };
  for await (const block of vectorBlocks(directory, choice)) {
    for (let start = 0; start < block.length; start += dimension) {
      const { value } = await passages.next();
      if (value === undefined) break;
      ids.push(idText(value.id));
      documents.push(value.document);
      vectors.push(Array.from(block.subarray(start, start + dimension)));
      if (ids.length === groupRows) await writeGroup();
    }
  }
  // Runs the generator to its end, where it compares the number of passages with the number of rows.
  await passages.next();
  await writeGroup();
  await write(parquet.end());
}
