import type { EncoderFamily } from '../encoder-family.ts';
import { BERT_MODEL_TYPES, parseBertConfig } from './bert-config.ts';
import { bertGraph } from './bert-graph.ts';
import { bertNativeRefusal, bertNativeWeights } from './bert-native.ts';
import { findBertWeights, findClassifierWeights } from './bert-weights.ts';

/** BERT, RoBERTa and XLM-R, with absolute positions. */
export const BERT_FAMILY: EncoderFamily = {
  modelTypes: BERT_MODEL_TYPES,
  examples: 'E5, BGE, MiniLM',
  parse: (raw, path) => {
    const config = parseBertConfig(raw, path);
    return {
      modelType: config.modelType,
      vocabularySize: config.vocabularySize,
      generatesText: false,
      overflowsFloat16: false,
      endToken: null,
      encoder: (weights) => {
        const found = findBertWeights(weights, config);
        return (precision, modules) => bertGraph(config, found, precision, modules);
      },
      engine: {
        refusal: bertNativeRefusal(config),
        weights: (weights, precision) => bertNativeWeights(config, findBertWeights(weights, config), precision),
      },
      crossEncoder: (weights) => {
        const found = findBertWeights(weights, config);
        const classifier = findClassifierWeights(weights, config);
        return {
          labels: classifier.projection.weight.shape[0]!,
          graph: (precision) => bertGraph(config, found, precision, classifier),
        };
      },
    };
  },
};
