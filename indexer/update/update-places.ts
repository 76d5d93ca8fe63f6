import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import type { RowBitmap } from '../../src/vector-index/row-bitmap.ts';
import type { BuildOptions } from '../build/build-options.ts';
import type { OutputFolder } from '../build/output-folder.ts';
import { cutPositions, shardCount } from '../build/shard-cut.ts';
import { type ShardPlace, storedPassages } from '../build/store-passages.ts';
import { refuseWithoutRoom } from '../disk-room.ts';
import { expectedBytes, sampleCorpus } from '../expected-size.ts';

/** A part of the corpus with so many new passages. */
export interface UpdatePlace extends ShardPlace {
  readonly rows: number;
}

/** The new passages in as few shards as `shardRows` allows, evenly; each from its first new passage to its last. */
export function placesOf(
  added: RowBitmap,
  shardRows: number,
  folderOf: (shard: number) => string,
): readonly UpdatePlace[] {
  const size = added.count();
  if (size === 0) return [];
  const cuts = cutPositions(size, shardCount(size, shardRows));
  const places: UpdatePlace[] = [];
  let [passage, begin] = [0, 0];
  for (const position of added) {
    const { first, end } = cuts[places.length]!;
    if (passage === first) begin = position;
    if (++passage < end) continue;
    const index = places.length;
    places.push({ index, folder: folderOf(index), first: begin, end: position + 1, rows: end - first });
  }
  return places;
}

/** By what the first passages let expect. @throws TrawlError DISK_FULL. */
export async function checkRoomForPassages(
  output: OutputFolder,
  { corpus, corpusOptions, encoder, kernel }: BuildOptions,
  scan: CorpusScan,
  open: readonly UpdatePlace[],
): Promise<void> {
  if (open.every(({ folder }) => storedPassages(folder) !== undefined)) return;
  const rows = open.reduce((sum, place) => sum + place.rows, 0);
  const sample = await sampleCorpus(corpus, corpusOptions, { scan, first: open[0]!.first, end: open.at(-1)!.end });
  const bytes = expectedBytes(rows, { dimension: encoder.dimension, codes: kernel !== undefined, sample });
  const total = bytes.vectors + bytes.codes + bytes.screen + bytes.passages;
  await refuseWithoutRoom(output, open, total, `${rows} new passages`);
}
