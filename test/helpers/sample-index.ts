import { join } from 'node:path';
import { DEFAULT_PASSAGE_TEMPLATE } from '../../corpus/passage-template.ts';
import { buildIndex } from '../../indexer/building/build-index.ts';
import { type OpenEncoderOptions, openEncoder } from '../../src/encoder/open-encoder.ts';
import { SAMPLE_PASSAGES } from '../cli/run-trawl.ts';
import { sharedFolder } from './shared-folder.ts';

/** Builds an index of the sample corpus with token-average-256, in `sample` within `folder`. Returns its path. */
export async function buildSampleIndex(folder: string, options: OpenEncoderOptions = {}): Promise<string> {
  const out = join(folder, 'sample');
  const make = (place: string): Promise<void> => build(place, options);
  await (Object.keys(options).length > 0 ? make(out) : sharedFolder('built-sample', out, make));
  return out;
}

async function build(out: string, options: OpenEncoderOptions): Promise<void> {
  const encoder = await openEncoder('token-average-256', { workers: 1, ...options });
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
}
