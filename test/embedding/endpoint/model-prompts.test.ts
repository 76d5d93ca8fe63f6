import assert from 'node:assert/strict';
import { test } from 'node:test';
import { modelPrompts } from '../../../src/embedding/endpoint/model-prompts.ts';

test('the prompts of a model follow from its name', () => {
  const web = 'Given a web search query, retrieve relevant passages that answer the query';
  for (const [name, query, passage] of [
    ['intfloat/e5-base-v2', 'query: ', 'passage: '],
    ['intfloat/multilingual-e5-large', 'query: ', 'passage: '],
    ['intfloat/multilingual-e5-large-instruct', `Instruct: ${web}\nQuery: `, ''],
    ['intfloat/e5-mistral-7b-instruct', `Instruct: ${web}\nQuery: `, ''],
    ['Alibaba-NLP/gte-Qwen2-1.5B-instruct', `Instruct: ${web}\nQuery: `, ''],
    ['Qwen/Qwen3-Embedding-8B', `Instruct: ${web}\nQuery:`, ''],
    ['BAAI/bge-m3', '', ''],
    ['nomic-embed-text:latest', 'search_query: ', 'search_document: '],
    ['google/embeddinggemma-300m', 'task: search result | query: ', 'title: none | text: '],
    ['Snowflake/snowflake-arctic-embed-l-v2.0', 'query: ', ''],
    ['snowflake-arctic-embed', 'Represent this sentence for searching relevant passages: ', ''],
    ['snowflake-arctic-embed2:latest', 'query: ', ''],
    ['BAAI/bge-large-en-v1.5', 'Represent this sentence for searching relevant passages: ', ''],
    ['bge-large:latest', 'Represent this sentence for searching relevant passages: ', ''],
    ['text-embedding-3-small', '', ''],
    ['Alibaba-NLP/gte-modernbert-base', '', ''],
  ] as const) {
    assert.deepEqual(modelPrompts(name), { query, passage }, name);
  }
  for (const name of ['our-own-model', 'BAAI/bge-en-icl', 'BAAI/bge-multilingual-gemma2']) {
    assert.equal(modelPrompts(name), null, name);
  }
});
