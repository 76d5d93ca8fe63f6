import assert from 'node:assert/strict';
import { test } from 'node:test';
import { modelPrompts } from '../../../src/encoder/model/model-families.ts';

test('the prompts of a model follow from its name', () => {
  const web = 'Given a web search query, retrieve relevant passages that answer the query';
  const bge = 'Represent this sentence for searching relevant passages: ';
  const reasonIr = '<|user|>\nGiven a question, retrieve relevant passages that help answer the question\n<|embed|>\n';
  for (const [names, query, passage] of [
    [
      ['Qwen/Qwen3-Embedding-0.6B', 'Qwen/Qwen3-Embedding-4B', 'Qwen/Qwen3-Embedding-8B'],
      `Instruct: ${web}\nQuery:`,
      '',
    ],
    [['intfloat/e5-small-v2', 'intfloat/e5-base-v2', 'intfloat/e5-large-v2'], 'query: ', 'passage: '],
    [['intfloat/multilingual-e5-small', 'intfloat/multilingual-e5-large'], 'query: ', 'passage: '],
    [['intfloat/multilingual-e5-large-instruct'], `Instruct: ${web}\nQuery: `, ''],
    [['intfloat/e5-mistral-7b-instruct'], `Instruct: ${web}\nQuery: `, ''],
    [['Alibaba-NLP/gte-Qwen2-1.5B-instruct', 'Alibaba-NLP/gte-Qwen2-7B-instruct'], `Instruct: ${web}\nQuery: `, ''],
    [['BAAI/bge-small-en-v1.5', 'BAAI/bge-base-en-v1.5', 'BAAI/bge-large-en-v1.5', 'bge-large:latest'], bge, ''],
    [['BAAI/bge-base-zh-v1.5'], '为这个句子生成表示以用于检索相关文章：', ''],
    [['BAAI/bge-m3'], '', ''],
    [['Alibaba-NLP/gte-modernbert-base', 'ibm-granite/granite-embedding-english-r2'], '', ''],
    [['Alibaba-NLP/gte-base-en-v1.5', 'Alibaba-NLP/gte-large-en-v1.5', 'Alibaba-NLP/gte-multilingual-base'], '', ''],
    [['nomic-ai/modernbert-embed-base'], 'search_query: ', 'search_document: '],
    [
      ['nomic-ai/nomic-embed-text-v1', 'nomic-ai/nomic-embed-text-v1.5', 'nomic-embed-text:latest'],
      'search_query: ',
      'search_document: ',
    ],
    [['google/embeddinggemma-300m'], 'task: search result | query: ', 'title: none | text: '],
    [
      ['jinaai/jina-embeddings-v3'],
      'Represent the query for retrieving evidence documents: ',
      'Represent the document for retrieval: ',
    ],
    [
      ['Snowflake/snowflake-arctic-embed-xs', 'Snowflake/snowflake-arctic-embed-m-v1.5', 'snowflake-arctic-embed'],
      bge,
      '',
    ],
    [
      [
        'Snowflake/snowflake-arctic-embed-m-v2.0',
        'Snowflake/snowflake-arctic-embed-l-v2.0',
        'snowflake-arctic-embed2:latest',
      ],
      'query: ',
      '',
    ],
    [['reasonir/ReasonIR-8B', 'ReasonIR-8B'], reasonIr, '<|embed|>\n'],
    [['facebook/contriever', 'facebook/contriever-msmarco'], '', ''],
    [['sentence-transformers/gtr-t5-base', 'sentence-transformers/sentence-t5-base'], '', ''],
    [['text-embedding-3-small'], '', ''],
  ] as const) {
    for (const name of names) assert.deepEqual(modelPrompts(name), { query, passage }, name);
  }
  for (const name of ['our-own-model', 'BAAI/bge-en-icl', 'BAAI/bge-multilingual-gemma2']) {
    assert.equal(modelPrompts(name), undefined, name);
  }
});
