import { browseCompPlusClient } from './clients/browsecomp-plus.ts';
import { deepResearchGymClient } from './clients/deep-research-gym.ts';
import { elasticsearchClient } from './clients/elasticsearch.ts';
import { foldAgentClient } from './clients/foldagent.ts';
import { dsServeClient, massiveServeClient } from './clients/massive-serve.ts';
import { nativeClient } from './clients/native.ts';
import { openResearcherClient } from './clients/openresearcher.ts';
import { r1SearcherClient } from './clients/r1-searcher.ts';
import { researchBatchClient, researchClient } from './clients/research.ts';
import { rllmClient } from './clients/rllm.ts';
import { rllmLegacyClient } from './clients/rllm-legacy.ts';
import { agentLightningClient, asearcherClient, searchR1Client, stepSearchClient } from './clients/search-r1.ts';
import { searchR1RerankClient, searchR1RerankTextClient, stepSearchRerankClient } from './clients/search-r1-rerank.ts';
import { searchAgentXClient } from './clients/searchagent-x.ts';
import { serperClient } from './clients/serper.ts';
import { skyrlClient } from './clients/skyrl.ts';
import { ultraRagClient } from './clients/ultrarag.ts';
import { verlToolClient, verlToolQuestionClient } from './clients/verl-tool.ts';
import { zeroSearchClient } from './clients/zerosearch.ts';
import type { DialectClient } from './dialect-client.ts';

/** A client for each dialect that searches. */
export const DIALECT_CLIENTS: readonly DialectClient[] = [
  searchR1Client,
  nativeClient,
  skyrlClient,
  rllmClient,
  stepSearchClient,
  asearcherClient,
  agentLightningClient,
  rllmLegacyClient,
  zeroSearchClient,
  r1SearcherClient,
  browseCompPlusClient,
  ultraRagClient,
  serperClient,
  massiveServeClient,
  dsServeClient,
  foldAgentClient,
  openResearcherClient,
  deepResearchGymClient,
  researchClient,
  researchBatchClient,
  searchAgentXClient,
  verlToolClient,
  verlToolQuestionClient,
  elasticsearchClient,
  searchR1RerankClient,
  searchR1RerankTextClient,
  stepSearchRerankClient,
];
