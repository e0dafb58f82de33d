"""Ordinary calls of the client library of a service, to a mock of the service's OpenAPI document.

Arguments: the name of the service, and the port of the mock. A line for each call: `ok NAME`, or `failed NAME: WHY`.
A call passes if the library accepts the response and the result is of the kind that the call is documented to return.
"""

import io
import sys
import warnings

warnings.simplefilter("ignore")


def stripe(port):
    import stripe

    stripe.api_key = "sk_test_123"
    stripe.api_base = f"http://127.0.0.1:{port}"
    stripe.max_network_retries = 0
    card = {"type": "card", "card": {"number": "4242424242424242", "exp_month": 12, "exp_year": 2034, "cvc": "314"}}
    line = {"price": "price_1", "quantity": 1}
    session = {"mode": "payment", "success_url": "https://a.example/ok", "line_items": [line]}
    recurring = {"interval": "month"}
    kind = lambda name: lambda found: found.object == name
    rows = lambda found: found.object == "list" and isinstance(found.data, list)
    yield "balance", lambda: stripe.Balance.retrieve(), kind("balance")
    yield "customer create", lambda: stripe.Customer.create(email="a@example.com", metadata={"a": "b"}), kind("customer")
    yield "customer create, address", lambda: stripe.Customer.create(name="A", address={"line1": "1", "city": "B"}), kind("customer")
    yield "customer retrieve", lambda: stripe.Customer.retrieve("cus_1"), kind("customer")
    yield "customer retrieve, expanded", lambda: stripe.Customer.retrieve("cus_1", expand=["default_source"]), kind("customer")
    yield "customer modify", lambda: stripe.Customer.modify("cus_1", description="d"), kind("customer")
    yield "customer list", lambda: stripe.Customer.list(limit=3), rows
    yield "customer list, created", lambda: stripe.Customer.list(created={"gte": 1, "lt": 2}), rows
    yield "customer delete", lambda: stripe.Customer.delete("cus_1"), lambda found: found.deleted
    yield "customer search", lambda: stripe.Customer.search(query="email:'a'"), lambda found: found.object == "search_result"
    yield "payment intent create", lambda: stripe.PaymentIntent.create(amount=2000, currency="usd", automatic_payment_methods={"enabled": True}), kind("payment_intent")
    yield "payment intent create, types", lambda: stripe.PaymentIntent.create(amount=1, currency="usd", payment_method_types=["card", "link"]), kind("payment_intent")
    yield "payment intent retrieve", lambda: stripe.PaymentIntent.retrieve("pi_1"), kind("payment_intent")
    yield "payment intent modify", lambda: stripe.PaymentIntent.modify("pi_1", metadata={"order": "6735"}), kind("payment_intent")
    yield "payment intent confirm", lambda: stripe.PaymentIntent.confirm("pi_1", payment_method="pm_card_visa"), kind("payment_intent")
    yield "payment intent capture", lambda: stripe.PaymentIntent.capture("pi_1"), kind("payment_intent")
    yield "payment intent cancel", lambda: stripe.PaymentIntent.cancel("pi_1", cancellation_reason="abandoned"), kind("payment_intent")
    yield "payment intent list", lambda: stripe.PaymentIntent.list(customer="cus_1"), rows
    yield "payment method create", lambda: stripe.PaymentMethod.create(**card), kind("payment_method")
    yield "payment method attach", lambda: stripe.PaymentMethod.attach("pm_1", customer="cus_1"), kind("payment_method")
    yield "payment method detach", lambda: stripe.PaymentMethod.detach("pm_1"), kind("payment_method")
    yield "payment method list", lambda: stripe.PaymentMethod.list(customer="cus_1", type="card"), rows
    yield "setup intent create", lambda: stripe.SetupIntent.create(payment_method_types=["card"]), kind("setup_intent")
    yield "charge retrieve", lambda: stripe.Charge.retrieve("ch_1"), kind("charge")
    yield "charge list", lambda: stripe.Charge.list(limit=3), rows
    yield "refund create", lambda: stripe.Refund.create(payment_intent="pi_1", amount=1), kind("refund")
    yield "refund list", lambda: stripe.Refund.list(), rows
    yield "product create", lambda: stripe.Product.create(name="P", default_price_data={"unit_amount": 1000, "currency": "usd", "recurring": recurring}), kind("product")
    yield "product modify", lambda: stripe.Product.modify("prod_1", active=False), kind("product")
    yield "product list", lambda: stripe.Product.list(active=True), rows
    yield "price create", lambda: stripe.Price.create(currency="usd", unit_amount=1000, recurring=recurring, product_data={"name": "P"}), kind("price")
    yield "price list", lambda: stripe.Price.list(lookup_keys=["a", "b"]), rows
    yield "coupon create", lambda: stripe.Coupon.create(duration="repeating", duration_in_months=3, percent_off=25.5), kind("coupon")
    yield "subscription create", lambda: stripe.Subscription.create(customer="cus_1", items=[{"price": "price_1"}, {"price": "price_2", "quantity": 2}]), kind("subscription")
    yield "subscription modify", lambda: stripe.Subscription.modify("sub_1", cancel_at_period_end=True), kind("subscription")
    yield "subscription cancel", lambda: stripe.Subscription.cancel("sub_1"), kind("subscription")
    yield "subscription list", lambda: stripe.Subscription.list(status="active"), rows
    yield "invoice create", lambda: stripe.Invoice.create(customer="cus_1", collection_method="send_invoice", days_until_due=30), kind("invoice")
    yield "invoice item create", lambda: stripe.InvoiceItem.create(customer="cus_1", amount=1, currency="usd"), kind("invoiceitem")
    yield "invoice finalize", lambda: stripe.Invoice.finalize_invoice("in_1"), kind("invoice")
    yield "invoice pay", lambda: stripe.Invoice.pay("in_1"), kind("invoice")
    yield "invoice list", lambda: stripe.Invoice.list(), rows
    yield "checkout session create", lambda: stripe.checkout.Session.create(**session), kind("checkout.session")
    yield "checkout session retrieve", lambda: stripe.checkout.Session.retrieve("cs_1", expand=["line_items"]), kind("checkout.session")
    yield "checkout session line items", lambda: stripe.checkout.Session.list_line_items("cs_1"), rows
    yield "payment link create", lambda: stripe.PaymentLink.create(line_items=[line]), kind("payment_link")
    yield "billing portal session", lambda: stripe.billing_portal.Session.create(customer="cus_1", return_url="https://a.example"), kind("billing_portal.session")
    yield "account create", lambda: stripe.Account.create(type="express", capabilities={"transfers": {"requested": True}}), kind("account")
    yield "account link create", lambda: stripe.AccountLink.create(account="acct_1", refresh_url="https://a.example", return_url="https://a.example", type="account_onboarding"), kind("account_link")
    yield "transfer create", lambda: stripe.Transfer.create(amount=1, currency="usd", destination="acct_1"), kind("transfer")
    yield "payout list", lambda: stripe.Payout.list(), rows
    yield "event list", lambda: stripe.Event.list(types=["charge.succeeded"]), rows
    yield "webhook endpoint create", lambda: stripe.WebhookEndpoint.create(url="https://a.example", enabled_events=["charge.failed"]), kind("webhook_endpoint")
    yield "tax rate create", lambda: stripe.TaxRate.create(display_name="VAT", percentage=16.0, inclusive=False), kind("tax_rate")
    yield "promotion code list", lambda: stripe.PromotionCode.list(), rows
    yield "dispute list", lambda: stripe.Dispute.list(), rows


def openai(port):
    from openai import OpenAI

    client = OpenAI(api_key="sk-1", base_url=f"http://127.0.0.1:{port}/v1", max_retries=0)
    has = lambda *names: lambda found: all(getattr(found, name, None) is not None for name in names)
    page = lambda found: isinstance(found.data, list)
    hello = [{"role": "user", "content": "hello"}]
    image = [{"role": "user", "content": [{"type": "text", "text": "?"}, {"type": "image_url", "image_url": {"url": "https://a.example/a.png"}}]}]
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    file = lambda: ("a.jsonl", io.BytesIO(b"{}\n"))
    yield "chat completion", lambda: client.chat.completions.create(model="gpt-4o", messages=hello), has("id", "choices")
    yield "chat completion, system", lambda: client.chat.completions.create(model="gpt-4o", messages=[{"role": "system", "content": "s"}] + hello, temperature=0.5, max_tokens=5), has("choices")
    yield "chat completion, image", lambda: client.chat.completions.create(model="gpt-4o", messages=image), has("choices")
    yield "chat completion, tools", lambda: client.chat.completions.create(model="gpt-4o", messages=hello, tools=[tool], tool_choice="auto"), has("choices")
    yield "chat completion, JSON", lambda: client.chat.completions.create(model="gpt-4o", messages=hello, response_format={"type": "json_object"}), has("choices")
    yield "chat completion list", lambda: client.chat.completions.list(), page
    yield "response", lambda: client.responses.create(model="gpt-4o", input="hello"), has("id", "output")
    yield "response, messages", lambda: client.responses.create(model="gpt-4o", input=hello, instructions="i"), has("output")
    yield "response, tools", lambda: client.responses.create(model="gpt-4o", input="hello", tools=[{"type": "web_search_preview"}]), has("output")
    yield "response retrieve", lambda: client.responses.retrieve("resp_1"), has("id")
    yield "response input items", lambda: client.responses.input_items.list("resp_1"), page
    yield "completion", lambda: client.completions.create(model="gpt-3.5-turbo-instruct", prompt="a"), has("choices")
    yield "embedding", lambda: client.embeddings.create(model="text-embedding-3-small", input="a", encoding_format="float"), page
    yield "embeddings", lambda: client.embeddings.create(model="text-embedding-3-small", input=["a", "b"], encoding_format="float"), page
    yield "model list", lambda: client.models.list(), page
    yield "model retrieve", lambda: client.models.retrieve("gpt-4o"), has("id", "created")
    yield "model delete", lambda: client.models.delete("ft:a"), has("id")
    yield "moderation", lambda: client.moderations.create(input="a"), has("results")
    yield "image", lambda: client.images.generate(prompt="a", model="dall-e-3", size="1024x1024", n=1), has("data")
    yield "speech", lambda: client.audio.speech.create(model="tts-1", voice="alloy", input="a"), lambda found: found.content is not None
    yield "transcription", lambda: client.audio.transcriptions.create(model="whisper-1", file=("a.mp3", io.BytesIO(b"a"))), has("text")
    yield "translation", lambda: client.audio.translations.create(model="whisper-1", file=("a.mp3", io.BytesIO(b"a"))), has("text")
    yield "file create", lambda: client.files.create(file=file(), purpose="fine-tune"), has("id", "bytes")
    yield "file list", lambda: client.files.list(), page
    yield "file retrieve", lambda: client.files.retrieve("file-1"), has("id")
    yield "file delete", lambda: client.files.delete("file-1"), has("id")
    yield "fine-tuning job create", lambda: client.fine_tuning.jobs.create(model="gpt-4o-mini", training_file="file-1"), has("id")
    yield "fine-tuning job list", lambda: client.fine_tuning.jobs.list(limit=2), page
    yield "fine-tuning job retrieve", lambda: client.fine_tuning.jobs.retrieve("ftjob-1"), has("id")
    yield "fine-tuning job cancel", lambda: client.fine_tuning.jobs.cancel("ftjob-1"), has("id")
    yield "fine-tuning job events", lambda: client.fine_tuning.jobs.list_events("ftjob-1"), page
    yield "batch create", lambda: client.batches.create(input_file_id="file-1", endpoint="/v1/chat/completions", completion_window="24h"), has("id")
    yield "batch list", lambda: client.batches.list(), page
    yield "batch retrieve", lambda: client.batches.retrieve("batch_1"), has("id")
    yield "vector store create", lambda: client.vector_stores.create(name="v"), has("id")
    yield "vector store list", lambda: client.vector_stores.list(), page
    yield "vector store file create", lambda: client.vector_stores.files.create("vs_1", file_id="file-1"), has("id")
    yield "vector store search", lambda: client.vector_stores.search("vs_1", query="a"), page
    yield "upload create", lambda: client.uploads.create(filename="a", purpose="fine-tune", bytes=3, mime_type="text/plain"), has("id")
    yield "conversation create", lambda: client.conversations.create(metadata={"a": "b"}), has("id")
    yield "assistant create", lambda: client.beta.assistants.create(model="gpt-4o", name="a"), has("id")
    yield "assistant list", lambda: client.beta.assistants.list(order="desc", limit=20), page
    yield "thread create", lambda: client.beta.threads.create(messages=hello), has("id")
    yield "message create", lambda: client.beta.threads.messages.create("thread_1", role="user", content="a"), has("id")
    yield "message list", lambda: client.beta.threads.messages.list("thread_1"), page
    yield "run create", lambda: client.beta.threads.runs.create("thread_1", assistant_id="asst_1"), has("id")
    yield "run retrieve", lambda: client.beta.threads.runs.retrieve("run_1", thread_id="thread_1"), has("id")


def twilio(port):
    from twilio.rest import Client

    account = "AC" + "0" * 32
    client = Client(account, "token")
    client.api.base_url = f"http://127.0.0.1:{port}"
    sid = lambda letters: letters + "1" * 32
    has = lambda *names: lambda found: all(hasattr(found, name) for name in names)
    rows = lambda found: isinstance(found, list)
    yield "message create", lambda: client.messages.create(to="+15558675310", from_="+15017122661", body="hello"), has("sid", "status")
    yield "message create, media", lambda: client.messages.create(to="+15558675310", from_="+15017122661", media_url=["https://a.example/a.png", "https://a.example/b.png"]), has("sid")
    yield "message fetch", lambda: client.messages(sid("SM")).fetch(), has("sid", "body")
    yield "message list", lambda: client.messages.list(limit=5), rows
    yield "message list, filter", lambda: client.messages.list(to="+15558675310", limit=5), rows
    yield "message update", lambda: client.messages(sid("SM")).update(body=""), has("sid")
    yield "message delete", lambda: client.messages(sid("SM")).delete(), lambda found: found is True
    yield "media list", lambda: client.messages(sid("MM")).media.list(limit=2), rows
    yield "call create", lambda: client.calls.create(to="+15558675310", from_="+15017122661", url="https://a.example/voice.xml"), has("sid", "status")
    yield "call create, TwiML", lambda: client.calls.create(to="+15558675310", from_="+15017122661", twiml="<Response><Say>a</Say></Response>", status_callback_event=["initiated", "answered"]), has("sid")
    yield "call fetch", lambda: client.calls(sid("CA")).fetch(), has("sid", "duration")
    yield "call update", lambda: client.calls(sid("CA")).update(status="completed"), has("sid")
    yield "call list", lambda: client.calls.list(status="busy", limit=5), rows
    yield "call delete", lambda: client.calls(sid("CA")).delete(), lambda found: found is True
    yield "recording list", lambda: client.recordings.list(limit=2), rows
    yield "recording fetch", lambda: client.recordings(sid("RE")).fetch(), has("sid")
    yield "recording delete", lambda: client.recordings(sid("RE")).delete(), lambda found: found is True
    yield "conference list", lambda: client.conferences.list(limit=2), rows
    yield "participant list", lambda: client.conferences(sid("CF")).participants.list(limit=2), rows
    yield "queue create", lambda: client.queues.create(friendly_name="q"), has("sid")
    yield "queue list", lambda: client.queues.list(limit=2), rows
    yield "number list", lambda: client.incoming_phone_numbers.list(limit=2), rows
    yield "number create", lambda: client.incoming_phone_numbers.create(phone_number="+14155552344"), has("sid")
    yield "number update", lambda: client.incoming_phone_numbers(sid("PN")).update(voice_url="https://a.example"), has("sid")
    yield "number fetch", lambda: client.incoming_phone_numbers(sid("PN")).fetch(), has("phone_number")
    yield "available number list", lambda: client.available_phone_numbers("US").local.list(area_code=510, limit=2), rows
    yield "account fetch", lambda: client.api.accounts(account).fetch(), has("sid")
    yield "account list", lambda: client.api.accounts.list(limit=2), rows
    yield "account create", lambda: client.api.accounts.create(friendly_name="sub"), has("sid")
    yield "balance", lambda: client.api.account.balance.fetch(), has("balance")
    yield "usage list", lambda: client.usage.records.list(limit=2), rows
    yield "usage today", lambda: client.usage.records.today.list(limit=2), rows
    yield "application create", lambda: client.applications.create(friendly_name="a"), has("sid")
    yield "application list", lambda: client.applications.list(limit=2), rows
    yield "key create", lambda: client.new_keys.create(friendly_name="k"), has("sid")
    yield "key list", lambda: client.keys.list(limit=2), rows
    yield "caller list", lambda: client.outgoing_caller_ids.list(limit=2), rows
    yield "address create", lambda: client.addresses.create(customer_name="A", street="1", city="B", region="C", postal_code="1", iso_country="US"), has("sid")
    yield "token create", lambda: client.tokens.create(), has("username")


def docker(port):
    import docker

    client = docker.APIClient(base_url=f"tcp://127.0.0.1:{port}", version="1.44")
    rows = lambda found: isinstance(found, list)
    has = lambda *names: lambda found: all(name in found for name in names)
    nothing = lambda found: found is None or found is True
    yield "ping", lambda: client.ping(), lambda found: found is True
    yield "version", lambda: client.version(), has("ApiVersion")
    yield "info", lambda: client.info(), has("Containers")
    yield "df", lambda: client.df(), has("LayersSize")
    yield "container list", lambda: client.containers(), rows
    yield "container list, filter", lambda: client.containers(all=True, filters={"status": "running", "label": ["a=b"]}), rows
    yield "container create", lambda: client.create_container("busybox", "true", name="web", environment={"A": "b"}, labels={"a": "b"}), has("Id")
    yield "container create, ports", lambda: client.create_container("busybox", ports=[80], volumes=["/a"], host_config=client.create_host_config(port_bindings={80: 8080}, binds=["/a:/b:ro"])), has("Id")
    yield "container inspect", lambda: client.inspect_container("c"), has("Id", "State")
    yield "container start", lambda: client.start("c"), nothing
    yield "container stop", lambda: client.stop("c", timeout=1), nothing
    yield "container restart", lambda: client.restart("c"), nothing
    yield "container pause", lambda: client.pause("c"), nothing
    yield "container unpause", lambda: client.unpause("c"), nothing
    yield "container kill", lambda: client.kill("c", signal="SIGTERM"), nothing
    yield "container rename", lambda: client.rename("c", "web"), nothing
    yield "container update", lambda: client.update_container("c", mem_limit="64m"), has("Warnings")
    yield "container remove", lambda: client.remove_container("c", v=True, force=True), nothing
    yield "container wait", lambda: client.wait("c"), has("StatusCode")
    yield "container top", lambda: client.top("c"), has("Titles")
    yield "container stats", lambda: client.stats("c", stream=False), lambda found: found is not None
    yield "container diff", lambda: client.diff("c"), rows
    yield "container prune", lambda: client.prune_containers(), has("SpaceReclaimed")
    yield "container commit", lambda: client.commit("c", repository="r", tag="t"), has("Id")
    yield "exec create", lambda: client.exec_create("c", ["ls", "-l"]), has("Id")
    yield "exec inspect", lambda: client.exec_inspect("e"), has("ID")
    yield "image list", lambda: client.images(), rows
    yield "image list, all", lambda: client.images(all=True, filters={"dangling": True}), rows
    yield "image inspect", lambda: client.inspect_image("busybox"), has("Id")
    yield "image history", lambda: client.history("busybox"), rows
    yield "image tag", lambda: client.tag("busybox", "r", tag="t"), nothing
    yield "image remove", lambda: client.remove_image("busybox", force=True), rows
    yield "image search", lambda: client.search("busybox", limit=1), rows
    yield "image pull", lambda: client.pull("busybox", tag="latest"), lambda found: isinstance(found, str)
    yield "image prune", lambda: client.prune_images(), has("SpaceReclaimed")
    yield "network list", lambda: client.networks(names=["n"]), rows
    yield "network create", lambda: client.create_network("n", driver="bridge", labels={"a": "b"}, ipam=docker.types.IPAMConfig(pool_configs=[docker.types.IPAMPool(subnet="10.1.0.0/16")])), has("Id")
    yield "network inspect", lambda: client.inspect_network("n"), has("Id")
    yield "network connect", lambda: client.connect_container_to_network("c", "n", aliases=["a"]), nothing
    yield "network disconnect", lambda: client.disconnect_container_from_network("c", "n"), nothing
    yield "network remove", lambda: client.remove_network("n"), nothing
    yield "volume list", lambda: client.volumes(), has("Volumes")
    yield "volume create", lambda: client.create_volume("v", driver="local", labels={"a": "b"}), has("Name")
    yield "volume inspect", lambda: client.inspect_volume("v"), has("Name")
    yield "volume remove", lambda: client.remove_volume("v", force=True), nothing
    yield "volume prune", lambda: client.prune_volumes(), has("SpaceReclaimed")
    yield "service list", lambda: client.services(), rows
    yield "node list", lambda: client.nodes(), rows
    yield "secret create", lambda: client.create_secret("s", b"secret"), lambda found: isinstance(found, dict)
    yield "config list", lambda: client.configs(), rows
    yield "swarm inspect", lambda: client.inspect_swarm(), has("ID")
    yield "plugin list", lambda: client.plugins(), rows


def kubernetes(port):
    from kubernetes import client

    configuration = client.Configuration()
    configuration.host = f"http://127.0.0.1:{port}"
    configuration.retries = False
    configuration.api_key = {"authorization": "Bearer token"}
    api = client.ApiClient(configuration)
    core, apps, batch = client.CoreV1Api(api), client.AppsV1Api(api), client.BatchV1Api(api)
    network, rbac, scaling = client.NetworkingV1Api(api), client.RbacAuthorizationV1Api(api), client.AutoscalingV1Api(api)
    meta = client.V1ObjectMeta(name="a", labels={"app": "a"})
    container = client.V1Container(name="c", image="nginx", ports=[client.V1ContainerPort(container_port=80)], env=[client.V1EnvVar(name="A", value="b")])
    spec = client.V1PodSpec(containers=[container], restart_policy="Never")
    template = client.V1PodTemplateSpec(metadata=meta, spec=spec)
    selector = client.V1LabelSelector(match_labels={"app": "a"})
    pod = client.V1Pod(metadata=meta, spec=spec)
    deployment = client.V1Deployment(metadata=meta, spec=client.V1DeploymentSpec(selector=selector, template=template, replicas=2))
    stateful = client.V1StatefulSet(metadata=meta, spec=client.V1StatefulSetSpec(selector=selector, template=template, service_name="a"))
    daemon = client.V1DaemonSet(metadata=meta, spec=client.V1DaemonSetSpec(selector=selector, template=template))
    service = client.V1Service(metadata=meta, spec=client.V1ServiceSpec(selector={"app": "a"}, ports=[client.V1ServicePort(port=80, target_port=8080)]))
    job = client.V1Job(metadata=meta, spec=client.V1JobSpec(template=template, backoff_limit=1))
    cron = client.V1CronJob(metadata=meta, spec=client.V1CronJobSpec(schedule="* * * * *", job_template=client.V1JobTemplateSpec(spec=job.spec)))
    backend = client.V1IngressBackend(service=client.V1IngressServiceBackend(name="a", port=client.V1ServiceBackendPort(number=80)))
    ingress = client.V1Ingress(metadata=meta, spec=client.V1IngressSpec(default_backend=backend))
    role = client.V1Role(metadata=meta, rules=[client.V1PolicyRule(verbs=["get"], api_groups=[""], resources=["pods"])])
    kind = lambda name: lambda found: type(found).__name__ == name
    # The library does not make an object of it.
    deleted = lambda found: isinstance(found, dict) and "status" in found
    yield "version", lambda: client.VersionApi(api).get_code(), kind("VersionInfo")
    yield "api list", lambda: client.CoreApi(api).get_api_versions(), kind("V1APIVersions")
    yield "api group list", lambda: client.ApisApi(api).get_api_versions(), kind("V1APIGroupList")
    yield "resource list", lambda: core.get_api_resources(), kind("V1APIResourceList")
    yield "namespace list", lambda: core.list_namespace(), kind("V1NamespaceList")
    yield "namespace create", lambda: core.create_namespace(client.V1Namespace(metadata=meta)), kind("V1Namespace")
    yield "namespace read", lambda: core.read_namespace("a"), kind("V1Namespace")
    yield "namespace delete", lambda: core.delete_namespace("a"), deleted
    yield "node list", lambda: core.list_node(), kind("V1NodeList")
    yield "node patch", lambda: core.patch_node("a", {"metadata": {"labels": {"a": "b"}}}), kind("V1Node")
    yield "pod list", lambda: core.list_namespaced_pod("default", label_selector="app=a", limit=5), kind("V1PodList")
    yield "pod list, all", lambda: core.list_pod_for_all_namespaces(field_selector="status.phase=Running"), kind("V1PodList")
    yield "pod create", lambda: core.create_namespaced_pod("default", pod), kind("V1Pod")
    yield "pod create, dry run", lambda: core.create_namespaced_pod("default", pod, dry_run="All"), kind("V1Pod")
    yield "pod read", lambda: core.read_namespaced_pod("a", "default"), kind("V1Pod")
    yield "pod status", lambda: core.read_namespaced_pod_status("a", "default"), kind("V1Pod")
    yield "pod log", lambda: core.read_namespaced_pod_log("a", "default", tail_lines=5), kind("str")
    yield "pod patch", lambda: core.patch_namespaced_pod("a", "default", {"metadata": {"annotations": {"a": "b"}}}), kind("V1Pod")
    yield "pod replace", lambda: core.replace_namespaced_pod("a", "default", pod), kind("V1Pod")
    yield "pod delete", lambda: core.delete_namespaced_pod("a", "default", grace_period_seconds=0), kind("V1Pod")
    yield "pod delete, options", lambda: core.delete_namespaced_pod("a", "default", body=client.V1DeleteOptions(propagation_policy="Foreground")), kind("V1Pod")
    yield "pod delete, collection", lambda: core.delete_collection_namespaced_pod("default", label_selector="app=a"), kind("V1Status")
    yield "service create", lambda: core.create_namespaced_service("default", service), kind("V1Service")
    yield "service list", lambda: core.list_namespaced_service("default"), kind("V1ServiceList")
    yield "service patch", lambda: core.patch_namespaced_service("a", "default", service), kind("V1Service")
    yield "service delete", lambda: core.delete_namespaced_service("a", "default"), kind("V1Service")
    yield "endpoints read", lambda: core.read_namespaced_endpoints("a", "default"), kind("V1Endpoints")
    yield "config map create", lambda: core.create_namespaced_config_map("default", client.V1ConfigMap(metadata=meta, data={"a": "b"})), kind("V1ConfigMap")
    yield "config map list", lambda: core.list_namespaced_config_map("default"), kind("V1ConfigMapList")
    yield "secret create", lambda: core.create_namespaced_secret("default", client.V1Secret(metadata=meta, string_data={"a": "b"})), kind("V1Secret")
    yield "secret read", lambda: core.read_namespaced_secret("a", "default"), kind("V1Secret")
    yield "event list", lambda: core.list_namespaced_event("default"), kind("CoreV1EventList")
    yield "service account create", lambda: core.create_namespaced_service_account("default", client.V1ServiceAccount(metadata=meta)), kind("V1ServiceAccount")
    yield "volume list", lambda: core.list_persistent_volume(), kind("V1PersistentVolumeList")
    yield "claim list", lambda: core.list_namespaced_persistent_volume_claim("default"), kind("V1PersistentVolumeClaimList")
    yield "deployment create", lambda: apps.create_namespaced_deployment("default", deployment), kind("V1Deployment")
    yield "deployment list", lambda: apps.list_deployment_for_all_namespaces(), kind("V1DeploymentList")
    yield "deployment patch", lambda: apps.patch_namespaced_deployment("a", "default", {"spec": {"replicas": 3}}), kind("V1Deployment")
    yield "deployment replace", lambda: apps.replace_namespaced_deployment("a", "default", deployment), kind("V1Deployment")
    yield "deployment scale", lambda: apps.read_namespaced_deployment_scale("a", "default"), kind("V1Scale")
    yield "deployment scale patch", lambda: apps.patch_namespaced_deployment_scale("a", "default", {"spec": {"replicas": 1}}), kind("V1Scale")
    yield "deployment delete", lambda: apps.delete_namespaced_deployment("a", "default"), deleted
    yield "replica set list", lambda: apps.list_namespaced_replica_set("default"), kind("V1ReplicaSetList")
    yield "stateful set create", lambda: apps.create_namespaced_stateful_set("default", stateful), kind("V1StatefulSet")
    yield "daemon set create", lambda: apps.create_namespaced_daemon_set("default", daemon), kind("V1DaemonSet")
    yield "job create", lambda: batch.create_namespaced_job("default", job), kind("V1Job")
    yield "job list", lambda: batch.list_namespaced_job("default"), kind("V1JobList")
    yield "cron job create", lambda: batch.create_namespaced_cron_job("default", cron), kind("V1CronJob")
    yield "ingress create", lambda: network.create_namespaced_ingress("default", ingress), kind("V1Ingress")
    yield "ingress list", lambda: network.list_ingress_for_all_namespaces(), kind("V1IngressList")
    yield "role create", lambda: rbac.create_namespaced_role("default", role), kind("V1Role")
    yield "cluster role list", lambda: rbac.list_cluster_role(), kind("V1ClusterRoleList")
    yield "autoscaler list", lambda: scaling.list_namespaced_horizontal_pod_autoscaler("default"), kind("V1HorizontalPodAutoscalerList")
    yield "custom resource definition list", lambda: client.ApiextensionsV1Api(api).list_custom_resource_definition(), kind("V1CustomResourceDefinitionList")
    yield "lease list", lambda: client.CoordinationV1Api(api).list_namespaced_lease("default"), kind("V1LeaseList")
    yield "storage class list", lambda: client.StorageV1Api(api).list_storage_class(), kind("V1StorageClassList")
    yield "access review", lambda: client.AuthorizationV1Api(api).create_self_subject_access_review(client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=client.V1ResourceAttributes(verb="get", resource="pods")))), kind("V1SelfSubjectAccessReview")


def main():
    name, port = sys.argv[1], int(sys.argv[2])
    services = {"stripe": stripe, "openai": openai, "twilio": twilio, "docker": docker, "kubernetes": kubernetes}
    for call, make, accepts in services[name](port):
        try:
            found = make()
            reason = None if accepts(found) else f"returned {found!r}"
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
        if reason is None:
            print(f"ok {call}", flush=True)
        else:
            print(f"failed {call}: {' '.join(reason.split())[:400]}", flush=True)


main()
