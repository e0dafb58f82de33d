import static com.github.tomakehurst.wiremock.client.WireMock.*;

import com.github.tomakehurst.wiremock.admin.model.ServeEventQuery;
import com.github.tomakehurst.wiremock.client.VerificationException;
import com.github.tomakehurst.wiremock.client.WireMock;
import com.github.tomakehurst.wiremock.common.Metadata;
import com.github.tomakehurst.wiremock.recording.RecordingStatus;
import com.github.tomakehurst.wiremock.stubbing.ServeEvent;
import com.github.tomakehurst.wiremock.stubbing.Scenario;
import com.github.tomakehurst.wiremock.stubbing.StubImport;
import com.github.tomakehurst.wiremock.stubbing.StubMapping;
import com.github.tomakehurst.wiremock.verification.LoggedRequest;
import com.github.tomakehurst.wiremock.verification.NearMiss;
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.UUID;

/** What tests do with WireMock's own client library, on a mock of plimsoll: port of the mock, port of its admin API. */
public class WireMockClient {
    static int port;
    static final HttpClient http = HttpClient.newHttpClient();

    static HttpResponse<String> ask(String method, String path, String body) throws Exception {
        HttpRequest.BodyPublisher publisher =
            body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body);
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
            .header("x-key", "k").method(method, publisher).build();
        return http.send(request, HttpResponse.BodyHandlers.ofString());
    }

    static void same(Object expected, Object found) {
        if (!expected.equals(found)) throw new AssertionError("expected " + expected + ", found " + found);
    }

    public static void main(String[] arguments) {
        try {
            run(arguments);
        } catch (Throwable failure) {
            failure.printStackTrace();
            // The threads of a server that still runs would keep the process.
            System.exit(1);
        }
    }

    static void run(String[] arguments) throws Exception {
        port = Integer.parseInt(arguments[0]);
        WireMock wiremock = new WireMock("127.0.0.1", Integer.parseInt(arguments[1]));
        configureFor(wiremock);
        wiremock.resetRequests();

        StubMapping hello = stubFor(get(urlPathEqualTo("/hello")).withName("greeting")
            .withHeader("x-key", equalTo("k")).withQueryParam("who", matching("A.*"))
            .withMetadata(Metadata.metadata().attr("owner", "ann"))
            .willReturn(okJson("{\"said\":\"hello\"}").withHeader("x-by", "mock")));
        HttpResponse<String> answer = ask("GET", "/hello?who=Ann", null);
        same(200, answer.statusCode());
        same("{\"said\":\"hello\"}", answer.body());
        same("mock", answer.headers().firstValue("x-by").get());

        verify(1, getRequestedFor(urlPathEqualTo("/hello")).withQueryParam("who", equalTo("Ann")));
        verify(exactly(0), postRequestedFor(anyUrl()));
        List<LoggedRequest> found = findAll(getRequestedFor(urlEqualTo("/hello?who=Ann")));
        same(1, found.size());
        same("k", found.get(0).getHeader("x-key"));
        same("Ann", found.get(0).queryParameter("who").firstValue());
        try {
            verify(postRequestedFor(urlPathEqualTo("/hello")));
            throw new AssertionError("nothing was posted");
        } catch (VerificationException expected) {
            if (!expected.getMessage().contains("POST")) throw expected;
        }

        List<ServeEvent> events = getAllServeEvents();
        same(1, events.size());
        same(true, events.get(0).getWasMatched());
        same(hello.getId(), events.get(0).getStubMapping().getId());
        same(1, getAllServeEvents(ServeEventQuery.forStubMapping(hello.getId())).size());

        same("greeting", getSingleStubMapping(hello.getId()).getName());
        same(1, findStubsByMetadata(matchingJsonPath("$.owner", equalTo("ann"))).size());
        same(0, findStubsByMetadata(matchingJsonPath("$.owner", equalTo("bob"))).size());

        editStub(get(urlPathEqualTo("/hello")).withId(hello.getId()).willReturn(aResponse().withStatus(204)));
        same(204, ask("GET", "/hello", null).statusCode());
        removeStub(hello);
        same(404, ask("GET", "/hello?who=Ann", null).statusCode());
        same(1, findUnmatchedRequests().size());

        stubFor(post("/orders").atPriority(1).withRequestBody(equalToJson("{\"a\":1}", true, true)).willReturn(created()));
        stubFor(any(anyUrl()).atPriority(10).willReturn(aResponse().withStatus(418).withBody("tea")));
        same(201, ask("POST", "/orders", "{\"a\":1,\"b\":2}").statusCode());
        same(418, ask("POST", "/orders", "{\"a\":2}").statusCode());
        wiremock.removeMappings();
        resetAllRequests();
        same(0, listAllStubMappings().getMappings().size());

        stubFor(get("/todo").inScenario("list").whenScenarioStateIs(Scenario.STARTED).willReturn(ok("nothing"))
            .willSetStateTo("full"));
        stubFor(get("/todo").inScenario("list").whenScenarioStateIs("full").willReturn(ok("milk")));
        same("nothing", ask("GET", "/todo", null).body());
        same("milk", ask("GET", "/todo", null).body());
        setScenarioState("list", Scenario.STARTED);
        same("nothing", ask("GET", "/todo", null).body());
        resetScenario("list");
        same("nothing", ask("GET", "/todo", null).body());
        Scenario scenario = getAllScenarios().get(0);
        same("full", scenario.getState());
        same(2, scenario.getMappings().size());
        resetAllScenarios();
        same("Started", getAllScenarios().get(0).getState());

        same(404, ask("GET", "/todos", null).statusCode());
        List<NearMiss> near = findNearMissesForAllUnmatched();
        same("/todo", near.get(0).getStubMapping().getRequest().getUrl());
        near = wiremock.findAllNearMissesFor(getRequestedFor(urlEqualTo("/todoz")));
        same("/todos", near.get(0).getRequest().getUrl());
        near = findNearMissesFor(findUnmatchedRequests().get(0));
        same("/todo", near.get(0).getStubMapping().getRequest().getUrl());

        UUID id = UUID.randomUUID();
        importStubs(StubImport.stubImport().stub(get("/one").withId(id).willReturn(ok("one")))
            .stub(get("/two").willReturn(ok("two"))).deleteAllExistingStubsNotInImport().build());
        same("one", ask("GET", "/one", null).body());
        same(2, listAllStubMappings().getMappings().size());
        same(5, removeServeEvents(anyRequestedFor(urlMatching("/todos?"))).size());
        resetToDefault();
        same(0, listAllStubMappings().getMappings().size());

        int[] count = {0};
        HttpServer real = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        real.createContext("/", exchange -> {
            byte[] text = ("answer " + ++count[0]).getBytes();
            exchange.getResponseHeaders().add("content-type", "text/plain");
            exchange.sendResponseHeaders(200, text.length);
            exchange.getResponseBody().write(text);
            exchange.close();
        });
        real.start();
        same(RecordingStatus.NeverStarted, getRecordingStatus().getStatus());
        startRecording("http://127.0.0.1:" + real.getAddress().getPort());
        same(RecordingStatus.Recording, getRecordingStatus().getStatus());
        same("answer 1", ask("GET", "/real?x=1", null).body());
        same("answer 2", ask("GET", "/real?x=1", null).body());
        same("answer 3", ask("POST", "/real", "{}").body());
        List<StubMapping> recorded = stopRecording().getStubMappings();
        real.stop(0);
        same(3, recorded.size());
        same(true, recorded.get(0).isPersistent());
        for (String expected : new String[] {"answer 1", "answer 2", "answer 2"}) {
            same(expected, ask("GET", "/real?x=1", null).body());
        }
        same("answer 3", ask("POST", "/real", "{}").body());
        for (StubMapping stub : recorded) removeStub(stub);
        same(404, ask("POST", "/real", "{}").statusCode());

        stubFor(get("/kept").willReturn(ok("kept")));
        saveAllMappings();
        stubFor(get("/lost").willReturn(ok("lost")));
        resetToDefault();
        same("kept", ask("GET", "/kept", null).body());
        same(404, ask("GET", "/lost", null).statusCode());
        for (StubMapping stub : listAllStubMappings().getMappings()) removeStub(stub);
        resetToDefault();
        same(404, ask("GET", "/kept", null).statusCode());
        System.out.println("ok");
    }
}
