import { throwIfCancelled } from '../../base/abort.ts';
import { collectionProblems, findCollection } from '../milvus/check-collection.ts';
import { parseMilvusAddress, shownAddress } from '../milvus/milvus-address.ts';
import { MilvusClient } from '../milvus/milvus-client.ts';
import { openCollection } from '../milvus/open-published-index.ts';
import { documentOf, idOf, keysOf, ROW_FIELD, rowFields, VECTOR_FIELD } from '../milvus/published-rows.ts';
import { ContentSum } from '../published/content-sum.ts';
import { storedRows } from '../published/publication.ts';
import { upperNorm } from '../published/upper-norm.ts';

/** Values of vectors that are read at a time. */
const VALUES_A_READ = 2 ** 19;

export interface CollectionReport {
  /** The address without user and password. */
  readonly address: string;
  readonly rows: number;
  /** Sentences. */
  readonly problems: readonly string[];
}

export interface VerifyCollectionOptions {
  /** Check the state of the collection and its files, but do not read the rows. */
  readonly quick: boolean;
  readonly signal: AbortSignal;
  readonly onProgress: (doneRows: number, rows: number) => void;
}

/**
 * Checks a published index: that the collection is loaded, indexed as published and complete, the checksums of the files, and, unless
 * `quick`, the checksum of all rows with vectors, ids and documents.
 */
export async function verifyCollection(
  place: string,
  { quick, signal, onProgress }: VerifyCollectionOptions,
): Promise<CollectionReport> {
  const address = parseMilvusAddress(place);
  const client = await MilvusClient.connect(address);
  try {
    const found = await findCollection(client, address);
    const report = { address: shownAddress(address), rows: storedRows(found.publication) };
    const problems = (await collectionProblems(client, found)).map(({ message }) => message);
    if (problems.length > 0) return { ...report, problems };
    // Reads the files and compares their checksums.
    await (await openCollection(client, found, async () => undefined)).close();
    if (quick) return { ...report, problems };
    const { manifest, pieces, keyColumns = [], contentSum, largestNorm } = found.publication;
    const { rows, dimension } = manifest;
    const fields = rowFields(dimension, { pieces, keyColumns }).map(({ name }) => name);
    const sum = new ContentSum();
    const atOnce = Math.max(1, Math.min(1_000, Math.floor(VALUES_A_READ / dimension)));
    for (let first = 0; first < rows; first += atOnce) {
      throwIfCancelled(signal);
      onProgress(first, rows);
      const filter = `${ROW_FIELD} >= ${first} and ${ROW_FIELD} < ${first + atOnce}`;
      for (const entity of await client.query(found.name, { filter, fields, consistency: 'Bounded', signal })) {
        const row = Number(entity[ROW_FIELD]);
        const vector = Float32Array.from(entity[VECTOR_FIELD] as number[]);
        const keys = keysOf(entity, keyColumns);
        sum.add({ row, vector, id: idOf(entity), document: documentOf(entity, pieces), keys });
        if (upperNorm(vector, 0, dimension) > largestNorm)
          problems.push(`Row ${row} is longer than any published vector.`);
      }
    }
    if (sum.hex !== contentSum) {
      problems.push(
        `The rows of ${found.name} have the checksum ${sum.hex}, but ${contentSum} was published. Publish the index again, into another collection.`,
      );
    }
    return { ...report, problems };
  } finally {
    await client.close();
  }
}
