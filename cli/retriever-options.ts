import type { Precision } from '../src/manifest/model-identity.ts';
import type { OpenRetrieverOptions } from '../src/retrieval/open-retriever.ts';
import { DEVICE_OPTION, PRECISION_OPTION, SHARE_WEIGHTS_OPTION, shareWeights } from './model-options.ts';

/** Options of every command that opens an index with its query encoder. */
export const RETRIEVER_OPTIONS = {
  model: {
    kind: 'string',
    value: 'NAME|DIR',
    help: 'The query encoder: a name in models/ or the path of a model folder. It has to be the one the index was made with. Default: where it lay when the index was made, else by the name in the manifest.',
  },
  precision: {
    ...PRECISION_OPTION,
    help: 'Which graph of the model embeds queries. Default: that of the index; int8 for an index of floats, or the reverse, only where it is given here.',
  },
  device: DEVICE_OPTION,
  'share-weights': SHARE_WEIGHTS_OPTION,
  'encoder-threads': {
    kind: 'integer',
    min: 1,
    max: 1024,
    help: 'Threads that embed queries. Default: the cores this process may use.',
  },
  'search-threads': {
    kind: 'integer',
    min: 1,
    max: 1024,
    help: 'Threads that search. Default: the cores this process may use.',
  },
} as const;

export function retrieverOptions(options: {
  readonly model: string | undefined;
  readonly precision: Precision | undefined;
  readonly device: string;
  readonly 'share-weights': 'auto' | 'yes' | 'no';
  readonly 'encoder-threads': number | undefined;
  readonly 'search-threads': number | undefined;
}): OpenRetrieverOptions {
  return {
    ...(options.model === undefined ? {} : { model: options.model }),
    ...(options.precision === undefined ? {} : { precision: options.precision }),
    device: options.device,
    shareWeights: shareWeights(options['share-weights']),
    ...(options['encoder-threads'] === undefined ? {} : { encoderThreads: options['encoder-threads'] }),
    ...(options['search-threads'] === undefined ? {} : { searchThreads: options['search-threads'] }),
  };
}
