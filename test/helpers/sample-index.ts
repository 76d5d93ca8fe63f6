import { join } from 'node:path';
import { DEFAULT_PASSAGE_TEMPLATE } from '../../corpus/passage-template.ts';
import { buildIndex } from '../../indexer/build/build-index.ts';
import { openEncoder } from '../../src/embedding/open-encoder.ts';
import { SAMPLE_PASSAGES } from '../cli/run-trawl.ts';

/** The sample corpus as an index with the embedded encoder, in a folder `sample` within the one given. */
export async function buildSampleIndex(folder: string): Promise<string> {
  const out = join(folder, 'sample');
  const encoder = await openEncoder('token-average-256');
  try {
    await buildIndex({
      corpus: [SAMPLE_PASSAGES],
      corpusOptions: {},
      encoder,
      out,
      overwrite: false,
      passageTemplate: DEFAULT_PASSAGE_TEMPLATE,
      uniqueIds: true,
      onProgress: () => undefined,
    });
  } finally {
    await encoder.close();
  }
  return out;
}
