import { join } from 'node:path';
import { DEFAULT_PASSAGE_TEMPLATE } from '../../corpus/passage-template.ts';
import { buildIndex } from '../../indexer/building/build-index.ts';
import { type OpenEncoderOptions, openEncoder } from '../../src/embedding/open-encoder.ts';
import { SAMPLE_PASSAGES } from '../cli/run-trawl.ts';

/** Builds an index of the sample corpus with token-average-256, in `sample` within `folder`. Returns its path. */
export async function buildSampleIndex(folder: string, options: OpenEncoderOptions = {}): Promise<string> {
  const out = join(folder, 'sample');
  const encoder = await openEncoder('token-average-256', options);
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
