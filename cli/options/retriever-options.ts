import { checkStored } from '../../indexer/verify/check-stored.ts';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import { isServerUrl } from '../../src/encoder/model-server/server-url.ts';
import type { OpenRetrieverOptions } from '../../src/search/opening/open-retriever.ts';
import { ENDPOINT_OPTIONS, type EndpointOptionValues, endpointOptions } from '../model/endpoint-options.ts';
import { DEVICE_OPTION, PRECISION_OPTION, SHARE_WEIGHTS_OPTION, shareWeights } from '../model/model-options.ts';

/** Options of the commands that open an index with its query encoder. */
export const RETRIEVER_OPTIONS = {
  model: {
    type: 'string',
    value: 'NAME|DIR|URL',
    help: 'The query encoder: a name in models/, the path of a model folder, or the URL of an embedding server (docs/endpoints.md). It must be the model that the index was built with. Default: the folder recorded in the index, else the name.',
  },
  precision: {
    ...PRECISION_OPTION,
    help: 'Precision of the model for queries. Default: that of the index. If it is missing, float32 and float16 replace each other; to combine int8 or bfloat16 with another precision, set it here.',
  },
  device: DEVICE_OPTION,
  'share-weights': SHARE_WEIGHTS_OPTION,
  'encoder-threads': {
    type: 'integer',
    min: 1,
    max: 1024,
    help: 'Threads that embed queries; on GPUs, of each device. Default: the cores available to this process; on GPUs 1 to 8, by the size of the model.',
  },
  'search-threads': {
    type: 'integer',
    min: 1,
    max: 1024,
    help: 'Threads that search. Default: the cores available to this process.',
  },
  'search-device': {
    type: 'string',
    value: 'DEVICE',
    default: 'cpu',
    help: 'Where the first pass over the vectors runs: cpu, cuda, or a CUDA device such as cuda:1. On a GPU the codes of the index are in its memory; the answers have the same bits (docs/gpu.md).',
  },
  ...ENDPOINT_OPTIONS,
} as const;

interface MachineOptions {
  readonly device: string;
  readonly 'share-weights': 'auto' | 'yes' | 'no';
  readonly 'encoder-threads': number | undefined;
  readonly 'search-threads': number | undefined;
  readonly 'search-device'?: string;
}

export function retrieverOptions(
  options: EndpointOptionValues &
    MachineOptions & { readonly model: string | undefined; readonly precision: Precision | undefined },
): OpenRetrieverOptions {
  return {
    ...(options.model === undefined || !isServerUrl(options.model)
      ? {}
      : { endpoint: endpointOptions(options), checkStored }),
    model: options.model,
    precision: options.precision,
    ...machineOptions(options),
  };
}

/** The options of an encoder that runs here, with the model of the index. */
export function machineOptions(options: MachineOptions): OpenRetrieverOptions {
  return {
    device: options.device,
    shareWeights: shareWeights(options['share-weights']),
    ...(options['encoder-threads'] === undefined ? {} : { encoderThreads: options['encoder-threads'] }),
    ...(options['search-threads'] === undefined ? {} : { searchThreads: options['search-threads'] }),
    ...(options['search-device'] === undefined ? {} : { searchDevice: options['search-device'] }),
  };
}
