import type { BenchServeResult } from '../../serve/bench-serve.ts';
import type { ClusterFigures } from '../../tables/cluster-figures.ts';
import type { MilvusSizeResult } from '../../tables/milvus-size-result.ts';
import type { SoakFigures, TrialsResult } from '../../tables/trials-result.ts';
import {
  clusterExpectations,
  milvusSizeExpectations,
  type ReplicasResult,
  replicasExpectations,
  serverExpectations,
  soakExpectations,
  trialsExpectations,
} from '../expectations/servers.ts';
import { type Reproduction, script } from '../reproduction.ts';
import { benchServerAlone } from '../server-alone.ts';
import { benchPrecisionServer } from '../server-precision.ts';

export const SERVERS: readonly Reproduction[] = [
  {
    name: 'server-bfloat16',
    file: 'bench/results/server-bfloat16.json',
    about: 'a server whose queries are embedded in bfloat16, beside a server like that of Search-R1 in float32',
    time: '6 minutes',
    run: (run) => benchPrecisionServer('bfloat16', run),
    expectations: (result) => serverExpectations(result as BenchServeResult),
  },
  {
    name: 'server-int8',
    file: 'bench/results/server-int8.json',
    about: 'the same with queries in int8',
    time: '5 minutes',
    run: (run) => benchPrecisionServer('int8', run),
    expectations: (result) => serverExpectations(result as BenchServeResult),
  },
  {
    name: 'server-alone',
    file: 'bench/results/server-alone.json',
    about: 'a server without an encoder, beside batches and at the limit of its load generator',
    time: '4 minutes',
    run: benchServerAlone,
    expectations: (result) => serverExpectations(result as BenchServeResult),
  },
  {
    name: 'replicas',
    file: 'bench/results/replicas.json',
    about:
      'failed, mixed and outdated answers of three servers under load; one is killed, and the index of all is swapped',
    time: 'a minute',
    ...script('checks/replicas.mjs'),
    expectations: (result) => replicasExpectations(result as ReplicasResult),
  },
  {
    name: 'trials',
    file: 'bench/results/trials.json',
    about:
      'answers of servers under rare events: swaps, full disks, clocks, 100,000 connections, clients that misbehave',
    time: '5 minutes',
    ...script('checks/trials.mjs'),
    expectations: (result) => trialsExpectations(result as TrialsResult),
  },
  {
    name: 'soak',
    file: 'bench/results/soak.json',
    about: 'answers, memory and handles of a server under full load for 20 minutes',
    time: '21 minutes',
    ...script('checks/soak.mjs'),
    expectations: (result) => soakExpectations(result as SoakFigures),
  },
  {
    name: 'milvus-cluster',
    file: 'bench/results/milvus-cluster.json',
    about:
      'answers of an index in Milvus with two query nodes, of which one is killed, frozen and restarted under load',
    time: '15 minutes',
    ...script('checks/cluster.mjs', ['milvus']),
    expectations: (result) => clusterExpectations(result as ClusterFigures),
  },
  {
    name: 'opensearch-cluster',
    file: 'bench/results/opensearch-cluster.json',
    about:
      'answers of an index in OpenSearch with three nodes, of which one is killed, frozen and restarted under load',
    time: '15 minutes',
    ...script('checks/cluster.mjs', ['opensearch']),
    expectations: (result) => clusterExpectations(result as ClusterFigures),
  },
  {
    name: 'milvus-size',
    file: 'bench/results/milvus-size.json',
    about: 'memory and search time of a standalone Milvus by the number of rows',
    time: '3 minutes',
    ...script('milvus-size.mjs', ['384', '20000', '100000']),
    expectations: (result) => milvusSizeExpectations(result as MilvusSizeResult),
  },
];
