import type { ModelOverrides } from '../../src/encoder/model/model-overrides.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import type { Journal } from '../../training/iteration/records.ts';
import { shareWeights } from '../model/model-options.ts';
import type { WorkContext } from './work-context.ts';

/** Opens the encoder of an iteration whose model has been imported. */
export function openIterationEncoder(
  { options, note }: Pick<WorkContext, 'options' | 'note'>,
  folder: string,
  { precision, overrides }: NonNullable<Journal['model']>,
): Promise<TextEncoder> {
  return openEncoder(folder, {
    workers: options['encoder-threads'],
    device: options.device,
    shareWeights: shareWeights(options['share-weights']),
    precision,
    overrides: overrides as ModelOverrides,
    onWarning: note,
  });
}
