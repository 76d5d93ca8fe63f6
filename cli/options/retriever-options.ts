import { checkStored } from '../../indexer/verify/check-stored.ts';
import type { OptionValues } from '../../src/base/options/option-spec.ts';
import { PRECISIONS } from '../../src/encoder/identity/model-identity.ts';
import { isServerUrl } from '../../src/encoder/model-server/server-url.ts';
import type { OpenRetrieverOptions } from '../../src/search/opening/open-retriever.ts';
import { ENDPOINT_OPTIONS, endpointOptions } from '../model/endpoint-options.ts';
import { DEVICE_OPTION, SHARE_WEIGHTS_OPTION, shareWeights } from '../model/model-options.ts';
import * as option from './option.ts';

/** Options of the commands that open an index with its query encoder. */
export const RETRIEVER_OPTIONS = {
  model: option.text(
    'NAME|DIR|URL',
    'The query encoder: a name in models/, the path of a model folder, or the URL of an embedding server (docs/endpoints.md). It must be the model that the index was built with. Default: the folder recorded in the index, else the name.',
  ),
  precision: option.choice(
    PRECISIONS,
    "Precision of the model for queries. Default: the index's. If it is missing, float32 and float16 replace each other; to combine int8 or bfloat16 with another precision, set it here.",
  ),
  device: DEVICE_OPTION,
  'share-weights': SHARE_WEIGHTS_OPTION,
  'encoder-threads': option.integer(
    { min: 1, max: 1024 },
    'Threads that embed queries; on GPUs, of each device. Default: the cores available to this process; on GPUs 1 to 8, by the size of the model.',
  ),
  'search-threads': option.integer(
    { min: 1, max: 1024 },
    'Threads that search. Default: the cores available to this process.',
  ),
  'search-device': option.text(
    { value: 'DEVICE', default: 'cpu' },
    'Where the first pass over the vectors runs: cpu, cuda, or a CUDA device such as cuda:1. On a GPU the codes of the index are in its memory; the answers have the same bits (docs/gpu.md).',
  ),
  ...ENDPOINT_OPTIONS,
} as const;

type Values = OptionValues<typeof RETRIEVER_OPTIONS>;

export function retrieverOptions(options: Values): OpenRetrieverOptions {
  const { model } = options;
  return {
    ...(model !== undefined && isServerUrl(model) ? { endpoint: endpointOptions(options), checkStored } : {}),
    model,
    precision: options.precision,
    ...machineOptions(options),
  };
}

/** The options of an encoder that runs here, with the model of the index. */
export function machineOptions(
  options: Pick<Values, 'device' | 'share-weights' | 'encoder-threads' | 'search-threads' | 'search-device'>,
): OpenRetrieverOptions {
  return {
    device: options.device,
    shareWeights: shareWeights(options['share-weights']),
    encoderThreads: options['encoder-threads'],
    searchThreads: options['search-threads'],
    searchDevice: options['search-device'],
  };
}
