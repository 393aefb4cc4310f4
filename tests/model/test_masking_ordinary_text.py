"""Ordinary names, commands and lines of logs, in which nothing is a secret: all of it is shown."""

from __future__ import annotations

import pytest

from cockpit.model.masked_logs import known_secrets
from cockpit.model.masking import masked, masked_bytes, masked_env

pytestmark = pytest.mark.req("TR-10")
LINES = r"""
commit 3f786850e387550fdab836ed7e6dc881de23001b
git_commit=3f786850e387550fdab836ed7e6dc881de23001b
git rev-parse HEAD: 3f786850e387550fdab836ed7e6dc881de23001b
cache key: 3f786850e387550fdab836ed7e6dc881de23001b
cache_key=3f786850e387550fdab836ed7e6dc881de23001b
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
image nvcr.io/nvidia/pytorch@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
docker://user@registry.example.org/team/image:24.05
6ba7b810-9dad-11d1-80b4-00c04fd430c8
run_id=6ba7b810-9dad-11d1-80b4-00c04fd430c8
wandb: run key: 2f8k3j1x
wandb: Run data is saved locally in wandb/run-20240511_101010-2f8k3j1x
job 123_4#2 at lab:123
tokenizer=meta-llama/Llama-3.1-8B
--tokenizer meta-llama/Llama-3.1-8B-Instruct
--tokenizer-path /data/tok/Llama-3.1-8B
--max-tokens 4096
--max-new-tokens=4096
--max_token_len 4096
--max-token-length 4096
--tokens-per-batch 8192
--num-tokens=1e9
--token-dropout 0.1
--token-type-ids
--pad-token '<pad>'
--eos-token "</s>"
--pad-token [PAD]
--mask-token [MASK]
--bos-token <s>
--special-token im_start
pad_token=[PAD]
pad_token: "<|endoftext|>"
eos_token_id=128001
eos_token="<|eot_id|>"
PAD_TOKEN=<pad>
PAD_TOKEN='<|endoftext|>'
EOS_TOKEN_ID=2
PAD_TOKEN_ID=0
NUM_TOKENS=100B
MAX_TOKEN_LENGTH=4096
primary_key=id
sort_key=loss foreign_key=user_id
partition_key=2024-05-11
PRIMARY_KEY=id
SORT_KEY=created_at
key=value
key=val_loss mode=min
--key value
--sort-key length
--sort-by-key
--label-key label
--text-key text
--image-key jpg
--text_key=text
--key-bits 2048
--data-key input_ids
monitor_key: val/loss
keys=[input_ids, attention_mask]
attention key: torch.Size([8, 128, 64]) query: torch.Size([8, 128, 64])
key_states.shape=torch.Size([1, 32, 128, 128])
missing key: model.layers.0.self_attn.q_proj.weight
missing keys: ['model.layers.0.self_attn.q_proj.weight']
KeyError: 'model.layers.0.weight'
Unexpected key(s) in state_dict: "module.encoder.layer.0"
unexpected key: "encoder.layer.0.attention.self.query.weight"
key "model.layers.11.mlp" not found
"key": "model.layers.11.mlp.down_proj.weight"
state_dict key = transformer.h.0.attn.c_attn.weight
num_key_value_heads=8
"num_key_value_heads": 8,
key_length=128
keys=4
author=ann authors: bob
authentication: disabled
auth: none
auth=none
--auth none
--auth-mode none
--auth-type sasl
auth_type=kerberos
auth: munge
AuthType=auth/munge
AuthInfo=(null)
auth method: key
pass=1 fail=2
pass 2 of 3
passed: 12
pass@1: 0.345
pass@1=0.345
pass rate: 0.95
PASS: test_model
--pass 2
--num-pass 2
--passes=3
two_pass=true
pass_through: enabled
first pass: loss=0.123
bypass=1
pat=.*\.py
--pat '*.py'
pattern=*.py --pattern=*.jsonl
PAT=x*
path=/data/train
pwd=/home/ann
PWD=/home/ann
pwd: /home/ann/project
cwd=/home/ann
NCCL INFO comm 0x5631e2a0 rank 0 nranks 8 cudaDev 0 busId 1b000 commId 0x9f3e2d1c0b5a4987 - Init COMPLETE
NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>
node01:1234:1234 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>
node01:81:99 [2] NCCL INFO Channel 00/24 :    0   3   2   1
NCCL_IB_HCA=mlx5_0:1,mlx5_1:1
NCCL_DEBUG=INFO NCCL_SOCKET_IFNAME=eth0
MASTER_ADDR=node01 MASTER_PORT=29500
d41d8cd98f00b204e9800998ecf8427e  model.safetensors
md5: d41d8cd98f00b204e9800998ecf8427e
md5sum=d41d8cd98f00b204e9800998ecf8427e
etag: "d41d8cd98f00b204e9800998ecf8427e"
checksum=0xDEADBEEF
sha1=da39a3ee5e6b4b0d3255bfef95601890afd80709
fingerprint: SHA256:uNiVztksCsDhcc0u9e8BgrJXVGDnNIYlKAXcPmH0+aE
RSA key fingerprint is SHA256:uNiVztksCsDhcc0u9e8BgrJXVGDnNIYlKAXcPmH0+aE
ED25519 key fingerprint: SHA256:uNiVztksCsDhcc0u9e8BgrJXVGDnNIYlKAXcPmH0+aE.
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl ann@host
public_key=AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl
public key: AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl
--public-key ~/.ssh/id_ed25519.pub
--ssh-key ~/.ssh/id_ed25519
ssh_key: ~/.ssh/id_ed25519.pub
host key: /etc/ssh/ssh_host_ed25519_key
--key-file /etc/ssl/key.pem
--key /etc/ssl/key.pem
KEY_FILE=/etc/ssl/key.pem
SSL_KEY_PATH=/etc/ssl/private/host.key
SSH_KEY_FILE=/home/ann/.ssh/id_rsa
TOKEN_FILE=/run/secrets/token
HF_TOKEN_PATH=/home/ann/.cache/huggingface/token
--token-file /run/secrets/token
--password-file /run/secrets/pw
--password-stdin
password_file=/run/secrets/db
--secret-name my-secret
secretName: my-secret
secret_name=db-credentials
imagePullSecrets: regcred
secretKeyRef: db
serviceAccountName: default
credential_helper=store
credential.helper=cache
credentials: /home/ann/.aws/credentials
AWS_REGION=eu-west-1
AWS_DEFAULT_REGION=eu-west-1
AWS_PROFILE=dev
AWS_EC2_METADATA_DISABLED=true
AWS_MAX_ATTEMPTS=5
AWS_CA_BUNDLE=/etc/ssl/ca.pem
AWS_ROLE_ARN=arn:aws:iam::123456789012:role/x
AWS_OFI_NCCL=1
TOKENIZERS_PARALLELISM=false
TOKEN_BUDGET=4096
TOKENS_PER_SECOND=1234
tokens/sec/gpu: 3456.7
tok/s=1234 token/s=12.3
token throughput: 12345.6
consumed tokens: 1.2T
token: 12 loss: 3.4
token 'the' (id 262)
token: "hello"
token: Ġhello
token=▁the
next token = 'Paris2024'
Token: <|im_start|>
Token indices sequence length is longer than 512
token_count=512
token_embedding.weight
tokens: ['a', 'b']
"token_type": "bearer"
token_type=bearer
cancellation token: CancellationTokenSource
csrf: ok
author_key=1
keyboard=de monkey=1
turnkey=True hotkey=F5
whiskey=1
secretary=ann
secret santa: bob
cockpit job 4711 -o json
/data/runs/key=abc/token=def/part-0001.parquet
s3://bucket/prefix/key=2024/part.parquet
--config keys.yaml --out tokens.bin
tokens.bin: 12 GiB
train_tokens_v2.jsonl
sk-learn==1.4
--load-key-from-checkpoint
HYDRA_FULL_ERROR=1
hf_hub_download
hf_transfer=1 HF_HUB_ENABLE_HF_TRANSFER=1
HF_HOME=/data/hf
hf_olmo_tokenizer_config
hf_BertForSequenceClassification
npm_config_cache=/tmp
npm_lifecycle_event
ghp_ is a prefix
eyJ is a prefix
epoch 3 step 1000 key/value cache: 12.3 GiB
kv_cache_key=block_0012
prefix cache key = block-00000012
nccl unique id: 0x9f3e2d1c0b5a49870a
ClusterKey=ClusterName
KeyName=lab
wandb: (1) Private W&B dashboard, no account required: key=x
XLA compile cache key: jit_train_step-1f3a9b8c7d6e5f4a3b2c1d0e9f8a7b6c
torch inductor cache key fxyzabcdefghijklmno
triton cache key: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
TRITON_CACHE_KEY=9f86d081
cache-key: linux-py3.11-4f5e
restore-keys: linux-py3.11
etcd key: /registry/pods/default/x
redis key: job:4711:state
object key: runs/2024/05/11/ckpt-1000.pt
object_key=runs/Ab12/ckpt-1000.pt
Key: runs/2024/05/11/ckpt_AB1000.pt
key: v1.2.3-Rc1-Linux
bucket_key=epoch=12-step=1000.ckpt
rng_key=Array([0, 42], dtype=uint32)
PRNGKey(0)
prng_key: [0 42]
rng key: 3735928559
jax.random.key(0)
passphrase: none
passwd: files systemd
/etc/passwd: ok
passwordless ssh: yes
nsswitch passwd: files
PasswordAuthentication no
PasswordAuthentication: no
password authentication: disabled
Password:
authorized_keys: 3
KbdInteractiveAuthentication=no
StrictHostKeyChecking=no
-o StrictHostKeyChecking=accept-new
UserKnownHostsFile=/dev/null
HostKeyAlgorithms=ssh-ed25519
PubkeyAuthentication=yes
bearer: ann
the bearer of this message
Bearer authentication required
Basic authentication required
authorization: required
authorization: denied for user ann
Authorization=none
auth_user=ann
user:pass@host
http://host:8888/tree
git@github.com:org/repo.git
ssh://git@github.com/org/repo.git
https://ann@host/x
pip install git+https://github.com/org/repo@v1.2.3
mailto://ann@example.org
rsync://host/mod
s3://bucket@eu/x
time 12:30:45 user@host
redis://localhost:6379/0
tcp://10.0.0.1:1234
HF model key: Llama-3.1-8B-Instruct
{"tokenizer_class": "LlamaTokenizerFast", "pad_token": "<pad>", "pad_token_id": 0}
{"env": {"PAD_TOKEN_ID": "0", "SORT_KEY": "loss", "AWS_MAX_ATTEMPTS": "5", "SSH_KEY_FILE": "/home/ann/.ssh/id"}}
Error: token expired
wandb: ERROR api key: missing
Digest: sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
""".strip("\n").split("\n")
ENV = {
    "PAD_TOKEN_ID": "0",
    "EOS_TOKEN": "</s>",
    "PRIMARY_KEY": "id",
    "TOKEN_FILE": "/run/secrets/token",
    "SSH_KEY": "~/.ssh/id_ed25519",
    "GOOGLE_APPLICATION_CREDENTIALS": "/home/ann/keys/gcp.json",
    "AWS_MAX_ATTEMPTS": "5",
    "AWS_CA_BUNDLE": "/etc/ssl/ca.pem",
    "TOKENIZER": "gpt2",
    "MAX_TOKENS": "4096",
}


@pytest.mark.parametrize("line", LINES)
def test_an_ordinary_line_is_shown_as_it_is(line: str) -> None:
    assert masked(line) == line


def test_a_whole_log_of_ordinary_lines_is_shown_as_it_is() -> None:
    log = "\n".join(LINES).encode()
    assert masked_bytes(log) == log


def test_ordinary_variables_are_shown_and_not_looked_for_in_logs() -> None:
    assert masked_env(ENV) == ENV
    assert known_secrets(ENV) == ()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("api key: aB3dE5gH7jK9mN1pQ", "api key: ***"),
        ("key=3f786850e387550fdab836ed7e6dc881de23001b", "key=***"),
        ("http://host:8888/lab?token=abcdef0123456789abcdef0123456789", "http://host:8888/lab?token=***"),
        ("DB_PASSWORD=/etc/passw0rd", "DB_PASSWORD=***"),
        ("AWS_SECRET_ACCESS_KEY=/home/x/y", "AWS_SECRET_ACCESS_KEY=***"),
        ("AWS_ACCESS_KEY_ID=abc", "AWS_ACCESS_KEY_ID=***"),
        ("PAD_TOKEN_SECRET=abc", "PAD_TOKEN_SECRET=***"),
        ("sent Bearer abcdefghijklmnopqrstuvwx", "sent Bearer ***"),
        ("Authorization: enabledabc", "Authorization: ***"),
        ("hf_BertForSequenceClassificationXy", "***"),
    ],
)
def test_a_secret_beside_them_is_still_masked(text: str, shown: str) -> None:
    assert masked(text) == shown
